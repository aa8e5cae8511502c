"""The question matcher knows paraphrases that its training never saw, and its Python form gives the same scores."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from alipes import Client, InvalidArgument
from support.examples import load
from support.server import ServerProcess

EXAMPLE = Path(__file__).parents[2] / "examples" / "questions"
KNOWN = (EXAMPLE / "models" / "nearest" / "questions.txt").read_text(encoding="utf-8").splitlines()
HELD_OUT = [line.split("\t") for line in (EXAMPLE / "held_out.tsv").read_text(encoding="utf-8").splitlines()]

phrases = load(EXAMPLE / "phrases.py")


@pytest.fixture(scope="module")
def client(serve_module: Callable[..., ServerProcess]) -> Iterator[Client]:
    with Client(serve_module(EXAMPLE / "models").http) as found:
        yield found


def texts(sentences: list[str]) -> Any:
    return np.array([[sentence] for sentence in sentences], np.object_)


def scores(client: Client, model: str, one: list[str], other: list[str]) -> Any:
    return client.infer(model, {"one": texts(one), "other": texts(other)})["score"][:, 0]


def run(script: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sentences_written_by_hand_find_the_question_they_mean(client: Client) -> None:
    answer = client.infer("matcher", {"text": texts([sentence for sentence, _ in HELD_OUT])})
    nearest = [row[0].decode() for row in answer["questions"]]
    missed = [(one, found) for (one, meant), found in zip(HELD_OUT, nearest, strict=True) if found != meant]
    assert len(missed) <= len(HELD_OUT) // 8, missed


def test_a_paraphrase_of_a_question_held_out_is_nearer_than_others(client: Client) -> None:
    dice = random.Random(5)
    held_out = sorted(phrases.HELD_OUT)
    right = 0
    for question in held_out:
        # The others share its action or its thing, or neither.
        others = [other for other in phrases.questions() if other != question]
        candidates = [question, *dice.sample(others, 40)]
        asked = phrases.phrase(question, dice)
        of_each = scores(client, "similarity", [asked] * 41, [phrases.phrase(one, dice) for one in candidates])
        right += int(of_each.argmax() == 0)
    assert right >= 0.9 * len(held_out)


def test_no_training_sees_what_is_held_out() -> None:
    dice = random.Random(17)
    trained_on = [question for question in phrases.questions() if question not in phrases.HELD_OUT]
    assert len(trained_on) == len(phrases.questions()) - len(phrases.HELD_OUT)
    seen = {phrases.phrase(question, dice).strip("?.") for question in trained_on for _ in range(200)}
    assert not seen & {sentence for sentence, _ in HELD_OUT}


def test_the_ensemble_gives_what_its_parts_give_by_hand(client: Client) -> None:
    session = onnxruntime.InferenceSession(EXAMPLE / "models" / "encoder" / "1" / "model.onnx")
    sentences = ["where is my parcel?", "how do i wipe the whole profile of mine"]
    tokens = client.infer("tokens", {"text": texts(sentences)})
    mask = tokens["attention_mask"]
    vectors = session.run(None, {"input_ids": tokens["input_ids"], "attention_mask": mask})[0]
    means = (vectors * mask[:, :, None]).sum(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(client.infer("meaning", {"text": texts(sentences)})["vector"], means, atol=1e-5)
    of_both = scores(client, "similarity", sentences[:1], sentences[1:])
    np.testing.assert_allclose(of_both, [means[0] @ means[1]], atol=1e-5)


def test_the_catalogue_holds_the_meanings_of_its_lines(client: Client) -> None:
    answer = client.infer("matcher", {"text": texts(KNOWN)})
    assert [row[0].decode() for row in answer["questions"]] == KNOWN
    np.testing.assert_allclose(answer["scores"][:, 0], 1.0, atol=1e-5)


def test_a_sentence_that_is_no_text_is_refused(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="it is not UTF-8"):
        client.infer("matcher", {"text": np.array([[b"caf\xe9"]], np.object_)})


def test_one_command_prints_the_nearest_questions() -> None:
    lines = run(EXAMPLE / "run.py", "--no-picture", "wipe the whole profile of mine").splitlines()
    assert lines[0] == "wipe the whole profile of mine"
    assert lines[1].endswith("  How do I delete my account?")
    assert len(lines) == 5


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch would train them")
def test_missing_weights_say_what_makes_them(tmp_path: Path) -> None:
    example = shutil.copytree(EXAMPLE, tmp_path / "questions")
    (example / "models" / "encoder" / "1" / "model.onnx").unlink()
    done = subprocess.run([sys.executable, example / "run.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no models/encoder/1/model.onnx: train.py makes it, after pip install")


@pytest.mark.extra("examples")
def test_the_transformer_in_python_gives_the_same_scores(serve_module: Callable[..., ServerProcess]) -> None:
    server = serve_module(EXAMPLE / "models", f"--model-repository={EXAMPLE / 'models-python'}")
    with Client(server.http) as client:
        for sentence, _ in HELD_OUT:
            native = scores(client, "similarity", [sentence] * len(KNOWN), KNOWN)
            in_python = scores(client, "transformer", [sentence] * len(KNOWN), KNOWN)
            np.testing.assert_allclose(in_python, native, atol=1e-5)
            assert native.max() - native.min() > 0.3


@pytest.mark.extra("examples")
def test_the_catalogue_can_be_changed_without_training(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    example = shutil.copytree(EXAMPLE, tmp_path / "questions")
    lines = ["Is there a guarantee on my device, and can it be extended?", *KNOWN[:3]]
    (example / "models" / "nearest" / "questions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run(example / "catalogue.py") == "wrote the vectors of 4 known questions\n"
    with Client(serve(example / "models").http) as client:
        answer = client.infer("matcher", {"text": texts(["prolonging my warranty"])})
    assert answer["questions"][0, 0].decode() == lines[0]


@pytest.mark.extra("plots")
def test_one_command_draws_the_scores(tmp_path: Path) -> None:
    picture = tmp_path / "questions.png"
    assert run(EXAMPLE / "run.py", "--output", str(picture)).splitlines()[-1] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.stat().st_size > 20_000


@pytest.mark.proof
@pytest.mark.extra("torch")
@pytest.mark.slow("it trains a network, if not for long, and exports it")
@pytest.mark.timeout(600)
def test_one_command_trains_where_there_are_no_weights(tmp_path: Path) -> None:
    example = shutil.copytree(EXAMPLE, tmp_path / "questions")
    for name in ("tokens/1/tokenizer.json", "encoder/1/model.onnx", "known/1/model.onnx"):
        (example / "models" / name).unlink()
    training = (example / "train.py").read_text(encoding="utf-8")
    assert "\nSTEPS = 1200\n" in training
    (example / "train.py").write_text(training.replace("\nSTEPS = 1200\n", "\nSTEPS = 10\n"), encoding="utf-8")
    printed = run(example / "run.py", "--no-picture", "where is my parcel?")
    assert "step 10 of 10: loss " in printed
    assert "the transformer in Python gives the same" in printed

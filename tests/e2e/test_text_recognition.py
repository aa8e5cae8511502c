"""The tutorial's text recognition: its configurations load as printed, and drawn words are read under each of them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from alipes import Client, InferError
from support.endpoints import ENDPOINTS
from support.examples import load
from support.server import ServerProcess

EXAMPLE = Path(__file__).parents[2] / "examples" / "text-recognition"
MODEL = "text_recognition"
WORDS = ("Triton", "batching", "2026", "HELLO", "queue")

# What the tutorial prints, to be added to the first part's config.pbtxt.
ADDITIONS = {
    "plain": "",
    "batching": "dynamic_batching { }",
    "delay": """
dynamic_batching {
    max_queue_delay_microseconds: 100
}
""",
    "instances": """
instance_group [
    {
      count: 2
      kind: KIND_GPU
    }
]
dynamic_batching { }
""",
    "gpus": """
instance_group [
  {
    count: 2
    kind: KIND_GPU
    gpus: [ 0, 1 ]
  }
]
""",
}

Serve = Callable[..., ServerProcess]

words = load(EXAMPLE / "words.py")


@pytest.fixture(scope="module", params=ADDITIONS)
def server(
    request: pytest.FixtureRequest, serve_module: Serve, tmp_path_factory: pytest.TempPathFactory
) -> ServerProcess:
    repository = shutil.copytree(EXAMPLE / "model_repository", tmp_path_factory.mktemp(request.param) / "models")
    with (repository / MODEL / "config.pbtxt").open("a", encoding="utf-8") as file:
        file.write(ADDITIONS[request.param])
    server = serve_module(repository)
    if "KIND_GPU" in ADDITIONS[request.param]:
        server.wait_for_output("GPU")
    return server


def picture(word: str) -> np.ndarray:
    return words.to_tensor(words.draw(word))


def test_the_configuration_is_in_force(server: ServerProcess, request: pytest.FixtureRequest) -> None:
    addition = ADDITIONS[request.node.callspec.params["server"]]
    with urlopen(f"http://{server.http}/v2/models/{MODEL}/config") as answer:
        config = json.load(answer)
    # Two is what the CPU has by default, too.
    assert [(group["kind"], group["count"]) for group in config["instance_group"]] == [("KIND_CPU", 2)]
    assert ("dynamic_batching" in config) == ("dynamic_batching" in addition)
    if "dynamic_batching" in config:
        assert config["dynamic_batching"]["max_queue_delay_microseconds"] == (100 if "100" in addition else 0)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_drawn_word_is_read(server: ServerProcess, endpoint: str) -> None:
    with ENDPOINTS[endpoint](server) as client:
        for word in WORDS:
            scores = client.ask(MODEL, {"input.1": picture(word)[None]})["308"]
            assert scores.shape == (1, 26, 37)
            assert words.to_word(scores[0]) == word.lower()


def test_sixteen_senders_of_two_pictures_read_their_own_words(server: ServerProcess) -> None:
    def ask(number: int) -> None:
        pair = [WORDS[number % len(WORDS)], WORDS[(number + 1) % len(WORDS)]]
        with Client(server.http) as client:
            for _ in range(5):
                scores = client.infer(MODEL, {"input.1": np.stack([picture(word) for word in pair])})["308"]
                assert [words.to_word(one) for one in scores] == [word.lower() for word in pair]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(16)))


def test_more_pictures_than_a_batch_may_have_are_refused(server: ServerProcess) -> None:
    with Client(server.http) as client, pytest.raises(InferError, match="8"):
        client.infer(MODEL, {"input.1": np.zeros((9, 1, 32, 100), np.float32)})


def test_words_that_differ_each_time_are_read(serve: Serve) -> None:
    dice = random.Random(2026)
    drawn = [words.random_word(dice) for _ in range(400)]
    pictures = np.stack([words.random_picture(word, dice) for word in drawn])
    with Client(serve(EXAMPLE / "model_repository").http) as client:
        parts = [client.infer(MODEL, {"input.1": pictures[start : start + 8]})["308"] for start in range(0, 400, 8)]
    read = [words.to_word(scores) for scores in np.concatenate(parts)]
    assert sum(one == word.lower() for one, word in zip(read, drawn, strict=True)) >= 340


def run(example: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=example, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow("it starts three servers")
def test_one_command_reads_words_with_the_three_configurations() -> None:
    lines = run(EXAMPLE, "run.py", "Alipes", "42", "--seconds", "0.1").splitlines()
    assert lines.count("  Alipes is read as alipes") == 3
    assert lines.count("  42 is read as 42") == 3
    assert sum(line.startswith("  Concurrency: 16, throughput: ") for line in lines) == 3


@pytest.mark.proof
@pytest.mark.extra("torch")
@pytest.mark.slow("it trains a network, if not for long, and exports it")
@pytest.mark.timeout(600)
def test_the_network_is_trained_and_exported_as_in_the_tutorial(tmp_path: Path, serve: Serve) -> None:
    example = shutil.copytree(EXAMPLE, tmp_path / "example")
    file = example / "model_repository" / MODEL / "1" / "model.onnx"
    file.unlink()
    assert "step 4 of 4: loss " in run(example, "train.py", "--steps", "4")
    file.unlink()
    assert "model.onnx" in run(example, "export.py")
    server = serve(example / "model_repository")
    with urlopen(f"http://{server.http}/v2/models/{MODEL}") as answer:
        described = answer.read().decode()
    assert '"input.1"' in described and '"308"' in described
    with Client(server.http) as client:
        assert client.infer(MODEL, {"input.1": np.zeros((3, 1, 32, 100), np.float32)})["308"].shape == (3, 26, 37)

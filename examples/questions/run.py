"""Asks a question matcher: one command, from sentences to a picture.

    pip install 'alipes[examples,plots]'
    python examples/questions/run.py
    python examples/questions/run.py "wipe my profile, please" "where is the box"

What it does, in order: trains the network if its weights are not there, serves it, asks for the known questions nearest
to some sentences, asks the transformer in Python for the same scores, and draws them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from alipes import Client
from alipes.serve import serve

Scores: TypeAlias = npt.NDArray[np.float32]

FOLDER = Path(__file__).parent
KNOWN = FOLDER / "models" / "nearest" / "questions.txt"
#: Rounding of single precision; both ways add in different orders.
SAME = 1e-5


def held_out() -> list[tuple[str, str]]:
    """Sentences that the network was not trained on, and the known question that each means."""
    lines = (FOLDER / "held_out.tsv").read_text(encoding="utf-8").splitlines()
    return [(sentence, question) for sentence, _, question in (line.partition("\t") for line in lines)]


def train_if_needed() -> None:
    """Trains the network and makes the catalogue, each where its file is missing; both print how far they are.

    Raises:
        SystemExit: If that needs a package that is not installed.
    """
    for script, file, package in (
        ("train.py", "encoder/1/model.onnx", "torch"),
        ("catalogue.py", "known/1/model.onnx", "onnx"),
    ):
        if (FOLDER / "models" / file).exists():
            continue
        if find_spec(package) is None:
            sys.exit(f"there is no models/{file}: {script} makes it, after pip install 'alipes[examples,torch]'")
        subprocess.run([sys.executable, str(FOLDER / script)], check=True)


def texts(sentences: Sequence[str]) -> npt.NDArray[np.object_]:
    """A batch of texts, `[sentences, 1]`."""
    return np.array([[sentence] for sentence in sentences], np.object_)


def print_nearest(client: Client, sentences: Sequence[str]) -> None:
    """Prints a table: each sentence, the known questions nearest to it, and their scores."""
    answer = client.infer("matcher", {"text": texts(sentences)})
    for sentence, questions, scores in zip(sentences, answer["questions"], answer["scores"], strict=True):
        print(sentence)
        for question, score in zip(questions, scores, strict=True):
            print(f"  {score:5.2f}  {question.decode()}")


def scores(client: Client, model: str, sentences: Sequence[str], known: Sequence[str]) -> Scores:
    """How alike each sentence is to each known question, `[sentences, known]`; a request for each sentence."""
    rows = [client.infer(model, {"one": texts([one] * len(known)), "other": texts(known)}) for one in sentences]
    return np.stack([row["score"][:, 0] for row in rows])


def compare(client: Client, native: Scores, sentences: Sequence[str], known: Sequence[str]) -> str:
    """Asks the transformer in Python for the same scores.

    Raises:
        SystemExit: If they differ.
    """
    difference = float(np.abs(scores(client, "transformer", sentences, known) - native).max())
    if difference > SAME:
        sys.exit(f"the transformer in Python differs from the ensemble by {difference:.2g}, which is more than {SAME}")
    return f"the transformer in Python gives the same {native.size} scores, to within {SAME}"


def main() -> None:
    """Does it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", help="what to ask; a few sentences of held_out.tsv if left out")
    parser.add_argument("--output", type=Path, default=Path("questions.png"), help="the picture (%(default)s)")
    parser.add_argument("--no-picture", action="store_true", help="only the text, which needs no matplotlib")
    asked = parser.parse_args()
    sentences: list[str] = asked.sentences or [sentence for sentence, _ in held_out()[::3]]
    known = KNOWN.read_text(encoding="utf-8").splitlines()

    train_if_needed()
    has_tokenizers = find_spec("tokenizers") is not None
    more = [f"--model-repository={FOLDER / 'models-python'}"] if has_tokenizers else []
    with serve(FOLDER / "models", wait=True, server_args=more) as server, server.client() as client:
        print_nearest(client, sentences)
        native = scores(client, "similarity", sentences, known)
        if has_tokenizers:
            print(compare(client, native, sentences, known))
        else:
            print("without the package tokenizers, the transformer in Python is left out")
    if not asked.no_picture:
        from picture import draw

        print(draw(native, sentences, known, asked.output))


if __name__ == "__main__":
    main()

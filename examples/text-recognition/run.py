"""Reads drawn words with the three configurations of the tutorial, and measures them as it does.

    pip install 'alipes[examples]'
    python examples/text-recognition/run.py
    python examples/text-recognition/run.py Hello 2026 --seconds 2

Each configuration is the one in `model_repository` with what the tutorial adds to it. Under each of them the words are
drawn, sent and read; then 2, 4, ... 16 senders send requests of two pictures without a pause.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from alipes import Client
from alipes.serve import serve
from words import draw, to_tensor, to_word

REPOSITORY = Path(__file__).parent / "model_repository"
MODEL = "text_recognition"
WORDS = ("Triton", "batching", "2026", "HELLO", "queue")
#: A GPU has one instance of a model unless that says otherwise, the CPU has two: here the tutorial's one is named.
SINGLE = "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
#: What the tutorial adds to `config.pbtxt`, as it prints it.
CONFIGURATIONS = {
    "no dynamic batching, single model instance": SINGLE,
    "just dynamic batching": SINGLE + "dynamic_batching { }\n",
    "dynamic batching with multiple model instances": """\
instance_group [
    {
      count: 2
      kind: KIND_GPU
    }
]
dynamic_batching { }
""",
}
SENDERS = range(2, 17, 2)
#: Pictures of a request: `-b 2` of the tutorial's perf_analyzer.
ROWS = 2


@dataclass(frozen=True)
class Measured:
    """What some senders saw."""

    pictures_per_s: float
    p95_us: float


@contextmanager
def serving(addition: str) -> Iterator[Client]:
    """Serves the repository with something added to its configuration."""
    with tempfile.TemporaryDirectory() as folder:
        models = Path(shutil.copytree(REPOSITORY, Path(folder) / "models"))
        with (models / MODEL / "config.pbtxt").open("a", encoding="utf-8") as file:
            file.write(addition)
        with serve(models, wait=True) as server, server.client() as client:
            yield client


def read(client: Client, words: Sequence[str]) -> list[str]:
    """Draws words, sends them one by one, and gives what is read."""
    answers = [client.infer(MODEL, {"input.1": to_tensor(draw(word))[None]})["308"] for word in words]
    return [to_word(scores[0]) for scores in answers]


def measure(client: Client, senders: int, seconds: float) -> Measured:
    """Sends from so many threads, each of which waits for its answer before it sends again."""
    pictures = np.stack([to_tensor(draw(word)) for word in WORDS[:ROWS]])
    took: list[float] = []
    threads = [threading.Thread(target=_send, args=(client, pictures, seconds, took)) for _ in range(senders)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - began
    return Measured(ROWS * len(took) / passed, float(np.percentile(took, 95)) * 1e6)


def _send(client: Client, pictures: npt.NDArray[np.float32], seconds: float, took: list[float]) -> None:
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        client.infer(MODEL, {"input.1": pictures})
        took.append(time.perf_counter() - began)


def main() -> None:
    """Does it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", default=WORDS, help="letters and digits to draw and read")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement; 0 measures nothing")
    asked = parser.parse_args()
    for name, addition in CONFIGURATIONS.items():
        print(f"{name}:")
        with serving(addition) as client:
            for word, found in zip(asked.words, read(client, asked.words), strict=True):
                print(f"  {word} is read as {found}")
            for senders in SENDERS if asked.seconds else ():
                seen = measure(client, senders, asked.seconds)
                print(
                    f"  Concurrency: {senders}, throughput: {seen.pictures_per_s:.0f} infer/sec,"
                    f" latency {seen.p95_us:.0f} usec"
                )


if __name__ == "__main__":
    main()

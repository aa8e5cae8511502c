"""Streams of frames: a repository of models for them, frames that arrive, and what was made of each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from support.python_models import write_model
from support.sequences import Samples, add_chain, add_streaming, means, windows

CHANNELS, STRIDE, LENGTH, COVER, BATCH = 2, 8, 32, 3, 4
UPDATES = 8
"""Updates of a frame."""
SAMPLES = UPDATES * BATCH * STRIDE
HELD = 777.0
BROKEN = 888.0

# Halves windows; holds the one that ends with 777 until there is a note `go`, and fails that which ends with 888.
_HALVES = f"""
class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(given(request)) for request in requests]

    def answer(self, window):
        if (window[..., -1] == {HELD}).any() and not (NOTES / "go").exists():
            note("reached", os.getppid())
            await_note("go")
        if (window[..., -1] == {BROKEN}).any():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("broken"))
        return answer(Y=window / window.dtype.type(2))
"""


def add_stream_models(repository: Path) -> None:
    """Writes `chain`, whose answers are means, and `halves`, whose answers are windows."""
    sizes = {"stride_size": STRIDE, "batch_size": BATCH}
    add_streaming(repository, "windows", "snapshotter", snapshot_size=LENGTH, channels=f"w:{CHANNELS}", **sizes)
    add_streaming(
        repository,
        "mean",
        "averager",
        update_size=STRIDE,
        num_updates=COVER,
        kernel_size=LENGTH,
        channels=CHANNELS,
        batch_size=BATCH,
    )
    (repository / "net" / "1").mkdir(parents=True)
    write_model(repository / "net" / "1" / "model.py", _HALVES)
    shape = [BATCH, CHANNELS, LENGTH]
    (repository / "net" / "config.pbtxt").write_text(
        f'backend: "python" input {{ name: "X" data_type: TYPE_FP32 dims: {shape} }} '
        f'output {{ name: "Y" data_type: TYPE_FP32 dims: {shape} }} instance_group {{ count: 1 kind: KIND_CPU }}'
    )
    steps = [("windows", "snapshot_update", "w"), ("net", "X", "Y")]
    update = [1, CHANNELS, STRIDE * BATCH]
    add_chain(repository, "chain", [*steps, ("mean", "update", "output_stream")], update, update)
    add_chain(repository, "halves", steps, update, shape)


def frames_of(count: int, seed: int = 3) -> list[Samples]:
    """Frames of a random series."""
    random = np.random.default_rng(seed)
    return [random.standard_normal((CHANNELS, SAMPLES), np.float32) for _ in range(count)]


def arrive(folder: Path, number: int, frame: np.ndarray[Any, Any]) -> None:
    """Has a frame arrive whole."""
    aside = folder / f".{number}.npy"
    np.save(aside, frame)
    aside.rename(folder / f"strain-{number}.npy")


def cleaned(frames: Iterable[Samples]) -> Samples:
    """What `chain` makes of frames that follow each other."""
    kernels = windows(np.concatenate(list(frames), axis=-1), STRIDE, LENGTH) / np.float32(2)
    return means(kernels, STRIDE, COVER)


def answers_of(folder: Path) -> dict[int, Any]:
    """The answers of each frame, by its number."""
    found = {}
    for file in sorted((folder / "frames").glob("[0-9]*.npz")):
        with np.load(file) as columns:
            (found[int(file.stem)],) = columns.values()
    return found


def manifest_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the manifest, without what differs between two runs."""
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "latency_s"} for line in lines]


def kinds_of(folder: Path) -> list[tuple[int, str]]:
    """The frames of the manifest, and what was done with each."""
    return [(line["frame"], line["kind"]) for line in manifest_of(folder)]

"""What the cells of a lecture about inference as a service find: the speaker's own module, a bucket, trained models."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from alipes import repository

from support.buckets import Missing, google
from support.cells import read_cells

torch = pytest.importorskip("torch", reason="the lecture exports PyTorch models")

CELLS = {cell.number: cell for cell in read_cells(Path(__file__).parents[1] / "e2e" / "notebooks" / "lecture.txt")}
ROWS = 4000


class Progress:
    """The speaker's progress bars: they count, and are done when as much was counted as all of them hold."""

    def __init__(self) -> None:
        self.totals: list[int] = []
        self.counted = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add_task(self, _name: str, *, total: int) -> int:
        self.totals.append(total)
        return len(self.totals)

    def update(self, _task: int, *, advance: int) -> None:
        self.counted += advance

    @property
    def finished(self) -> bool:
        return self.counted >= sum(self.totals)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Google's buckets, as `gs://` finds them."""
    folder = tmp_path / "buckets"
    folder.mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    # gcsfs would ask a service that emulators lack for the kind of each bucket, and wait a minute for the answer.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        with google(folder) as place:
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", place.options["endpoint_url"])
            yield
    except Missing as missing:
        pytest.skip(str(missing))


def tree(path: str) -> None:
    shown = io.StringIO()
    repository.print_tree(path, shown)
    print(shown.getvalue(), end="")


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hermes: None) -> dict[str, Any]:
    """What the cells find: the speaker's own module, and what earlier cells have made on GPUs."""
    utils = ModuleType("utils")
    utils.__dict__.update(print_tree=tree, GpuUtilProgress=Progress)
    monkeypatch.setitem(sys.modules, "utils", utils)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for number in (1, 2):
        CELLS[number].run(space)
    torch.manual_seed(0)
    space |= {
        "INPUT_SIZE": 64,
        "inference_model": space["MLP"](64, [256, 128, 64]),
        "noise_remover": torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 64)),
        "N": ROWS,
        "dataset": np.random.default_rng(0).standard_normal((ROWS, 64)).astype("float32"),
    }
    return space


def check_answers(space: dict[str, Any]) -> None:
    """The ensemble gives what the two models give one after the other."""
    triton, rows = space["triton"], space["dataset"][:8]
    tensor = triton.InferInput("noisy", rows.shape, "FP32")
    tensor.set_data_from_numpy(rows)
    y = space["client"].infer("end-to-end", [tensor]).as_numpy("y")
    with torch.no_grad():
        expected = space["inference_model"](space["noise_remover"](torch.from_numpy(rows))).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)

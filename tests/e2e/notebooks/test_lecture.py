"""The cells of a lecture about inference as a service that export models and ask for them, as they stand there.

Left out is what trains and compares on GPUs and what rents clusters. The cells import the toolkit under its oldest
name; `utils` and `cluster`, which are the speaker's own, are stood in for.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from alipes import repository
from support.buckets import Missing, google
from support.cells import Cell, read_cells
from support.lecture import CONFIG, SCALED
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="the lecture exports PyTorch models")
pytestmark = [
    pytest.mark.extra("torch"),
    pytest.mark.filterwarnings("ignore"),
]  # the clients of buckets warn of each other

CELLS = {cell.number: cell for cell in read_cells(Path(__file__).with_name("lecture.txt"))}
ROWS = 4000

TREE = "my-repo/\n    my-model/\n{versions}        config.pbtxt\n"
VERSION = "        {}/\n            model.onnx\n"


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


@pytest.fixture
def answered() -> Iterator[None]:
    """The oldest names of the toolkit, answered to by ours."""
    compat = import_module("alipes.compat.hermes")
    compat.install()
    try:
        yield
    finally:
        compat.uninstall()


def tree(path: str) -> None:
    shown = io.StringIO()
    repository.print_tree(path, shown)
    print(shown.getvalue(), end="")


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: None) -> dict[str, Any]:
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


def export(space: dict[str, Any], read: Callable[[], str]) -> None:
    """Cells 13 to 17, and what they show."""
    assert str(CELLS[13].run(space)) == 'name: "my-model"\nplatform: "onnxruntime_onnx"\n'
    assert read() == "my-repo/\n    my-model/\nModel config:\n"
    assert str(CELLS[14].run(space)) == CONFIG
    assert space["export_path"] == "my-model/1/model.onnx"
    CELLS[15].run(space)
    assert read() == TREE.format(versions=VERSION.format(1))
    CELLS[16].run(space)
    assert read() == TREE.format(versions=VERSION.format(1) + VERSION.format(2))
    assert repr(CELLS[17].run(space)) == SCALED


@pytest.mark.slow("a whole notebook is run")
@pytest.mark.timeout(600)
def test_every_cell_does_what_it_shows(
    space: dict[str, Any],
    bucket: None,
    serve: Callable[..., ServerProcess],
    capsys: pytest.CaptureFixture[str],
) -> None:
    export(space, lambda: capsys.readouterr().out)

    CELLS[19].run(space)
    assert not Path("my-repo").exists()
    assert str(space["entry"].config) == SCALED
    assert space["export_path"] == "my-model/1/model.onnx"

    server = serve("gs://ligo-quiver-demo", "--model-control-mode=explicit")
    # The cell puts its port behind the address. In an address that has one already, gRPC takes that for a fragment.
    address = f"ipv4:{server.grpc}#"
    space["cluster"] = SimpleNamespace(k8s_client=SimpleNamespace(wait_for_service=lambda _name: address))
    try:
        for number in (23, 24):
            CELLS[number].run(space)
        Cell(0, 'do_some_iaas_inference("my-model")').run(space)
        for number in (25, 27, 29):
            CELLS[number].run(space)
        check_answers(space)
    finally:
        space["client"].close()


def check_answers(space: dict[str, Any]) -> None:
    """The ensemble gives what the two models give one after the other."""
    triton, rows = space["triton"], space["dataset"][:8]
    tensor = triton.InferInput("noisy", rows.shape, "FP32")
    tensor.set_data_from_numpy(rows)
    y = space["client"].infer("end-to-end", [tensor]).as_numpy("y")
    with torch.no_grad():
        expected = space["inference_model"](space["noise_remover"](torch.from_numpy(rows))).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)

"""Which models are proved to do the same for any numbers, and what that saves an export."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from alipes.repository.export.torch_proof import reads_no_numbers

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

pytestmark = [
    pytest.mark.extra("torch"),
    # Tracing is on its way out of torch, not out of people's scripts.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

LONG = 1 << 18
"""So many numbers make a proof cheaper than comparisons."""


class Module(torch.nn.Module):  # type: ignore[misc]
    """A function behind a layer, which counts its calls."""

    def __init__(self, function: Callable[[Any], Any], columns: int = 4) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(columns, 1)
        self.register_buffer("last", torch.zeros(()))
        self.calls = 0
        self._function = function

    def forward(self, x: Any) -> Any:
        if not torch.jit.is_tracing():
            self.calls += 1
        self.last = x.mean()
        return self._function(x) + self.layer(x)


class Branch(torch.nn.Module):  # type: ignore[misc]
    """Branches in a script."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        if bool(x.sum() > 0):
            return x
        return -x


class Keeper(torch.nn.Module):  # type: ignore[misc]
    """A script that keeps its input."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3, 4)

    def forward(self, x):  # type: ignore[no-untyped-def]
        self.last = x
        return x + 1


STRAIGHT: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: x.relu() * 2,
    "sizes": lambda x: x * x.shape[0] if x.shape[1] > 2 else x,
    "masks": lambda x: torch.where(x > 0, x, x.exp()),
    "the order of rows": lambda x: x[x[:, 0].argsort()],
    "spectra": lambda x: torch.fft.irfft(torch.fft.rfft(x)),
    "a constant that is read": lambda x: x * torch.tensor(3.0).item(),
}

READING: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda x: x if x.sum() > 0 else -x,
    "a comparison without a warning": lambda x: x if torch.equal(x, x * 0) else -x,
    "another one": lambda x: x if torch.allclose(x, x * 0) else -x,
    "a number": lambda x: x * x[0, 0].item(),
    "numpy": lambda x: x * float(x.numpy().sum()),
    "an array": lambda x: x * float(np.asarray(x).sum()),
    "a list": lambda x: x * x.tolist()[0][0],
    "DLPack": lambda x: x * float(np.from_dlpack(x).sum()),
    "the memory": lambda x: x * x.untyped_storage()[0],
    "the address": lambda x: x * (x.data_ptr() % 2),
    "sizes from numbers": lambda x: x[x[:, 0] > 0].sum() * x,
}


@pytest.mark.parametrize("how", STRAIGHT)
def test_what_reads_no_number_is_proved(how: str) -> None:
    with torch.no_grad():
        assert reads_no_numbers(Module(STRAIGHT[how]), (torch.randn(3, 4),))


@pytest.mark.parametrize("how", READING)
def test_what_reads_a_number_is_not_proved(how: str) -> None:
    with torch.no_grad():
        assert not reads_no_numbers(Module(READING[how]), (torch.randn(3, 4),))


def test_scripts_that_branch_or_write_their_state_are_not_proved() -> None:
    samples = (torch.randn(3, 4),)
    with torch.no_grad():
        straight = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), samples)
        assert reads_no_numbers(straight, samples)
        assert not reads_no_numbers(torch.jit.script(Branch()), samples)
        assert not reads_no_numbers(torch.jit.script(Keeper()), samples)


def test_a_proof_leaves_the_model_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """What it keeps of a run, such as a running mean among its buffers, stays a real number of the run before."""
    samples = (torch.randn(3, 4),)
    module = Module(lambda x: print("seen", x) or x)
    with torch.no_grad():
        module(*samples)
        last, state = module.last, dict(module.state_dict())
        capsys.readouterr()
        assert reads_no_numbers(module, samples)
    assert module.last is last
    assert module.calls == 1
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert capsys.readouterr().out == ""
    gc.collect()
    assert torch.equal(module(*samples), module(*samples))


@pytest.mark.parametrize(("platform", "calls"), [("TORCHSCRIPT", 2), ("ONNX", 6)])
def test_a_large_model_is_called_as_often_as_a_proof_leaves_it_to_be(tmp_path: Path, platform: str, calls: int) -> None:
    """Once for its outputs' shapes, whose numbers are compared first, and once for each further comparison."""
    module = Module(torch.relu, LONG)
    _export(tmp_path, platform, module)
    assert module.calls == calls


def test_a_small_model_is_compared_on_every_kind_of_numbers(tmp_path: Path) -> None:
    module = Module(torch.relu)
    _export(tmp_path, "TORCHSCRIPT", module, columns=4)
    assert module.calls == 9


def test_a_large_model_that_branches_without_a_warning_is_refused(tmp_path: Path) -> None:
    module = Module(lambda x: x if not torch.equal(x, x * 0) else x + 1, LONG)
    with pytest.raises(ExportError, match="the trace depends on its input"):
        _export(tmp_path, "TORCHSCRIPT", module)


def _export(folder: Path, platform: str, module: Any, columns: int = LONG) -> None:
    model = qv.ModelRepository(folder / "repo").add("m", qv.Platform[platform])
    options = {"dynamo": False} if platform == "ONNX" else {}
    model.export_version(module, input_shapes={"x": (2, columns)}, output_names=["OUTPUT__0"], **options)

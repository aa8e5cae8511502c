"""An export is quiet: what torch says meanwhile is shown where it fails, what the user's model says is shown always."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
from alipes import repository as qv
from alipes.errors import ExportError

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")
pytest.importorskip("onnxscript", reason="torch's exporter needs the package onnxscript")

pytestmark = pytest.mark.extra("torch")

MODULE = """
import sys, warnings, torch
from alipes import repository as qv

class Talks(torch.nn.Module):
    def forward(self, x):
        print("forward speaks")
        warnings.warn("forward warns")
        return x + 1 if {condition} else x - 1

model = qv.ModelRepository("repo").add("m", qv.Platform.ONNX)
"""


def run(folder: Path, condition: str, rest: str) -> subprocess.CompletedProcess[str]:
    """A script that exports a model which prints and warns."""
    script = folder / "script.py"
    script.write_text(MODULE.format(condition=condition) + textwrap.dedent(rest))
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=folder, timeout=100
    )


class Branching(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x


@pytest.mark.slow("torch is imported and exports by both of its ways")
def test_an_export_says_what_the_model_says_and_nothing_else(tmp_path: Path) -> None:
    # The first exporter gives up at this branch with pages of graphs; the second one traces it.
    done = run(
        tmp_path, "x.abs().sum() >= 0", 'model.export_version(Talks(), input_shapes={"x": (None, 4)})\nprint("done")'
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[-1] == "done"
    assert set(said) == {"forward speaks", "done"}
    lines = done.stderr.splitlines()
    assert [line for line in lines if "UserWarning: forward warns" in line]
    ours = [line for line in lines if "it is traced instead" in line]
    assert len(ours) == 1
    assert "Could not guard on data-dependent expression" in ours[0]
    rest = [line for line in lines if line not in ours and "forward warns" not in line and 'warn("' not in line]
    assert rest == []


@pytest.mark.proof
@pytest.mark.slow("torch is imported and fails to export")
def test_the_noise_of_torch_is_shown_where_the_export_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "x.sum() > 0", 'model.export_version(Talks(), input_shapes={"x": (None, 4)}, dynamo=True)')
    assert done.returncode == 1
    assert "alipes.ExportError: export of model 'm' as ONNX failed" in done.stderr
    head, _, noise = done.stderr.rpartition("Output of the frameworks during the export:")
    assert "torch.ops.aten.sum" in noise
    assert "torchvision" not in head


def test_a_refused_trace_says_where_torch_saw_it_coming(tmp_path: Path) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.TORCHSCRIPT)
    with pytest.raises(ExportError, match="the trace depends on its input") as caught:
        model.export_version(Branching(), input_shapes={"x": (None, 4)})
    notes = "\n".join(caught.value.__notes__)
    assert "TracerWarning: Converting a tensor to a Python boolean" in notes
    assert "return x * 2 if x.sum() > 0 else x" in notes


def test_a_warning_of_the_model_that_is_an_error_ends_the_export(tmp_path: Path) -> None:
    class Warns(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            warnings.warn("mind the units", stacklevel=1)
            return x

    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.TORCHSCRIPT)
    with pytest.raises(ExportError, match="UserWarning: mind the units"):
        model.export_version(Warns(), input_shapes={"x": (None, 4)})
    with pytest.warns(UserWarning, match="mind the units"):
        model.export_version(Warns(), input_shapes={"x": (None, 4)})
    assert model.versions == [1]


@pytest.mark.slow("torch.export is asked three times")
def test_streams_and_logs_are_afterwards_as_they_were(tmp_path: Path) -> None:
    def state() -> dict[str, object]:
        names = [name for name in logging.root.manager.loggerDict if name.startswith(("torch", "onnx"))]
        loggers = {name: (logging.getLogger(name).propagate, logging.getLogger(name).handlers[:]) for name in names}
        return {"out": sys.stdout, "err": sys.stderr, "show": warnings.showwarning, **loggers}

    repository = qv.ModelRepository(tmp_path)
    repository.add("first", qv.Platform.ONNX).export_version(torch.nn.Identity(), input_shapes={"x": (None, 4)})
    before = state()
    repository.add("m", qv.Platform.ONNX).export_version(Branching(), input_shapes={"x": (None, 4)}, check=False)
    with pytest.raises(ExportError):
        repository.add("n", qv.Platform.ONNX).export_version(Branching(), input_shapes={"x": (None, 4)}, dynamo=True)
    # Others may have come meanwhile.
    assert {name: one for name, one in state().items() if name in before} == before


def test_verbose_shows_what_torch_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.ONNX)
    with warnings.catch_warnings(record=True):  # torch's own are shown too
        model.export_version(torch.nn.Identity(), input_shapes={"x": (None, 4)}, verbose=1, dynamo=True)
    assert "[torch.onnx]" in capsys.readouterr().out

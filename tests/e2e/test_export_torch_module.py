"""A module that no exporter takes is exported as code and weights, and served with the module's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client, ModelRepository
from alipes.errors import ExportError
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

pytestmark = [pytest.mark.extra("torch"), pytest.mark.timeout(300)]

SOURCE = """
import torch


class Gate(torch.nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.second = torch.nn.Linear(width, width)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.first(x) if float(x.sum()) > 0 else -self.second(x)


def make():
    return Gate()
"""
SHAPES = {"x": (None, 3)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "network.py"
    file.write_text(SOURCE)
    return file


def gate(source: Path) -> Any:
    found: dict[str, Any] = {"__name__": "network"}
    exec(compile(source.read_text(), str(source), "exec"), found)  # as a script would have it
    torch.manual_seed(3)
    return found["make"]().eval()


def test_a_module_with_branches_is_served_with_its_own_numbers(
    tmp_path: Path, source: Path, serve: Callable[..., ServerProcess]
) -> None:
    module = gate(source)
    model = ModelRepository(tmp_path / "models").add("gate", "torchmodule")
    path = model.export_version(module, input_shapes=SHAPES, output_names=["y"], factory=source)
    assert path == "gate/1/model.safetensors"
    assert sorted(file.name for file in (tmp_path / "models" / "gate" / "1").iterdir()) == ["model.py", path[7:]]
    assert ModelRepository(tmp_path / "models").models["gate"].platform.name == "TORCHMODULE"
    server = serve(tmp_path / "models", "--model-control-mode=explicit")
    with Client(server.http, timeout_s=240) as client:
        client.load("gate")
        for sign in (1, -1, 1):
            rows = np.full((2, 3), sign, "f4")
            with torch.no_grad():
                expected = module(torch.from_numpy(rows)).numpy()
            assert np.array_equal(client.infer("gate", {"x": rows})["y"], expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "factory='network.py', a file with a function make\\(\\)"),
        ("import nowhere_to_be_found", "cannot make the module: ModuleNotFoundError: No module named"),
        ("import torch", "has no function make\\(\\), and no class derived from torch.nn.Module"),
        ("def make(): return 7", "gave a int, expected a torch.nn.Module"),
        (SOURCE.replace("width=3", "width=4"), "the module that model.py makes is another one: .*size mismatch"),
        (SOURCE.replace("-self.second", "self.second"), "differs from eager"),
    ],
)
def test_code_that_makes_another_module_is_refused(tmp_path: Path, source: Path, text: str | None, words: str) -> None:
    module = gate(source)
    model = ModelRepository(tmp_path / "models").add("gate", "torchmodule")
    options: dict[str, Any] = {}
    if text is not None:
        options["factory"] = tmp_path / "other.py"
        options["factory"].write_text(text)
    with pytest.raises(ExportError, match=words):
        model.export_version(module, input_shapes=SHAPES, **options)
    assert model.versions == []


def test_a_file_that_is_not_there_is_named(tmp_path: Path, source: Path) -> None:
    model = ModelRepository(tmp_path / "models").add("gate", "torchmodule")
    with pytest.raises(ExportError, match=r"cannot read nowhere.py: No such file"):
        model.export_version(gate(source), input_shapes=SHAPES, factory="nowhere.py")

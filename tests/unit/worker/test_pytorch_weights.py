"""Weights of a file become views of their file: the same numbers, and one copy in memory for all instances."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from alipes.worker.frameworks.pytorch.shared_weights import share_weights  # noqa: E402
from support.torch_models import save_exported, save_script  # noqa: E402

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

WIDTH = 64


def made() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)), torch.nn.BatchNorm1d(WIDTH)).eval()


def saved(folder: Path) -> tuple[Any, Any, Path]:
    """A module, and its script as it was read from a file."""
    module = made()
    save_script(module)(folder)
    return module, torch.jit.load(str(folder / "model.pt")).eval(), folder / "model.pt"


def mapped(file: Path) -> list[tuple[int, int]]:
    """The addresses at which this process has a file in its memory."""
    lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(file))]
    return [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in lines]  # type: ignore[misc]


def test_weights_are_views_of_the_file_and_give_the_same_bits(tmp_path: Path) -> None:
    module, script, file = saved(tmp_path)
    rows = torch.randn(5, WIDTH)
    shared = share_weights([*script.parameters(), *script.buffers()], file)
    assert shared == 3 * WIDTH * WIDTH * 4  # biases are too small
    [(begin, end), *_] = mapped(file)
    weights = [one for one in script.parameters() if one.ndim == 2]
    assert all(begin <= one.data_ptr() < end for one in weights)
    with torch.no_grad():
        assert np.array_equal(script(rows).numpy(), module(rows).numpy())


def test_weights_of_an_exported_program_are_shared_too(tmp_path: Path) -> None:
    module, rows = made(), torch.randn(5, WIDTH)
    save_exported(module, torch.zeros(2, WIDTH))(tmp_path)
    program = torch.export.load(str(tmp_path / "model.pt2")).module()
    assert share_weights(program.parameters(), tmp_path / "model.pt2") == 3 * WIDTH * WIDTH * 4
    with torch.no_grad():
        assert np.array_equal(program(rows).numpy(), module(rows).numpy())


def test_what_is_written_to_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    _, script, file = saved(tmp_path)
    before = hashlib.sha256(file.read_bytes()).digest()
    share_weights(script.parameters(), file)
    with torch.no_grad():
        for one in script.parameters():
            one.zero_()
    assert hashlib.sha256(file.read_bytes()).digest() == before


def test_a_part_of_a_larger_tensor_and_other_numbers_are_left_alone(tmp_path: Path) -> None:
    _, script, file = saved(tmp_path)
    weight = next(iter(script.parameters())).detach()
    part = torch.cat([weight, weight])[:WIDTH]
    other = weight.clone()
    other[-1, -1] += 1
    assert share_weights([part, other], file) == 0

"""Modules of PyTorch, and their files in a repository."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

__all__ = [
    "FACTORY",
    "LINEAR",
    "Counted",
    "Entries",
    "Nested",
    "Replaced",
    "Seen",
    "Stepped",
    "Texts",
    "Total",
    "Two",
    "add",
    "linear",
    "ports",
    "save_exported",
    "save_script",
    "to_file",
    "weights",
]

Save = Callable[[Path], None]

FACTORY = """
import torch


def make():
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
"""


class Two(torch.nn.Module):  # type: ignore[misc]
    """Two arguments whose order matters, the second optional, and two results."""

    def forward(self, left: torch.Tensor, right: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        if right is None:
            right = torch.zeros_like(left)
        return 2 * left - right, (left > right).sum(1, keepdim=True)


def linear(seed: int = 0) -> Any:
    """A module of three numbers to two; of the same weights each time, for one seed."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()


def save_script(module: Any, *examples: Any) -> Save:
    """Writes TorchScript: traced where there are examples, else from the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript itself, which is written all the same
        script = torch.jit.trace(module, examples) if examples else torch.jit.script(module)
    return lambda folder: script.save(str(folder / "model.pt"))


def save_exported(module: Any, *examples: Any, dynamic: bool = True) -> Save:
    """Writes an archive of `torch.export`, the first axis open."""
    shapes = tuple({0: torch.export.Dim.DYNAMIC} for _ in examples) if dynamic else None
    program = torch.export.export(module, examples, dynamic_shapes=shapes)
    return lambda folder: torch.export.save(program, str(folder / "model.pt2"))


def add(repository: Path, name: str, save: Callable[[Path], object], config: str = "") -> Path:
    """A model whose files `save` writes into the folder of version 1, which is given back."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    save(folder)
    if config:
        (repository / name / "config.pbtxt").write_text(config)
    return folder


def ports(inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """Inputs and outputs by name, each a datatype and dims, such as `FP32 3`."""
    found = ""
    for side, tensors in (("input", inputs), ("output", outputs)):
        for name, words in tensors.items():
            kind, dims, *rest = words.split(" ", 2)
            found += f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: [{dims}] {" ".join(rest)} }}\n'
    return found


def to_file(name: str, write: Callable[[str], object]) -> Save:
    return lambda folder: (write(str(folder / name)), None)[1]


def weights(factory: str = FACTORY, name: str = "model.safetensors") -> Save:
    def save(folder: Path) -> None:
        from safetensors.torch import save_file

        (folder / "model.py").write_text(factory)
        state = linear().state_dict()
        if name.endswith(".safetensors"):
            save_file(state, folder / name)
        elif name:
            torch.save(state, folder / name)

    return save


class Texts(torch.nn.Module):  # type: ignore[misc]
    """The bytes of each text, as TorchScript counts them, and the texts themselves."""

    def forward(self, words: list[str]) -> tuple[torch.Tensor, list[str]]:
        sizes: list[int] = []
        for word in words:
            sizes.append(len(word))
        return torch.tensor(sizes), words


class Entries(torch.nn.Module):  # type: ignore[misc]
    """A dictionary in, a dictionary out."""

    def forward(self, entries: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": entries["a"] + entries["b"], "difference": entries["a"] - entries["b"]}


class Nested(torch.nn.Module):  # type: ignore[misc]
    """Arguments within arguments, one of them a number."""

    def forward(self, pair: tuple[Any, Any], scale: int, *, entries: dict[str, Any]) -> dict[str, Any]:
        return {"sum": scale * pair[0] + pair[1], "rest": entries["a"] - pair[0]}


class Total(torch.nn.Module):  # type: ignore[misc]
    """Adds up what it gets, call after call, in a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x
        return self.total


class Replaced(Total):
    """The same, with a new buffer each time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total + x
        return self.total


class Counted(Total):
    """Writes to its buffer, and answers by its input alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += 1
        return 2 * x


class Stepped(torch.nn.Module):  # type: ignore[misc]
    """A step of a sequence, which is told where it begins: a sum in a dictionary, and results within a result."""

    def forward(self, start: torch.Tensor, total: torch.Tensor, x: torch.Tensor) -> dict[str, Any]:
        after = torch.where(start > 0, torch.zeros_like(total), total) + x.int()
        return {"sum": after + 100.0, "pair": (after, 2 * x)}


class Seen(torch.nn.Module):  # type: ignore[misc]
    """How many rows came together."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.full([x.shape[0], 1], float(x.shape[0]))


LINEAR = ports({"INPUT__0": "FP32 3"}, {"OUTPUT__0": "FP32 2"})

"""Opens weights beside a `model.py` that makes the module they belong to, and pickled modules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from alipes.worker.failure import describe
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.pytorch.binding import Arguments, Results
from alipes.worker.frameworks.pytorch.maker import CODE, FACTORY, NoFactoryError, find_factory
from alipes.worker.frameworks.pytorch.opened import OpenedFile, safe_pickles
from alipes.worker.loading import load_module

__all__ = ["WEIGHTS", "open_factory"]

WEIGHTS: Final = ("model.safetensors", "model.pt")
"""What the weights are called where the configuration names the code."""


def open_factory(opening: Opening) -> OpenedFile:
    """Makes a module by the `model.py` of the version, and gives it the weights that lie beside.

    Raises:
        LoadError: If there is no such file, what it makes is no module, or the weights do not fit.
    """
    folder, file = opening.file.parent, opening.file
    if file.suffix == ".py":
        code = file
        weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    else:
        code, weights = folder / CODE, file
    state = _state(opening, weights) if weights is not None else None
    if isinstance(state, torch.nn.Module):
        module = state
    elif not code.is_file():
        raise opening.refuse(
            f"it holds weights alone: {opening.into_repository()}put a {CODE} beside it, whose function {FACTORY}() "
            f"gives the module that they belong to{opening.then_serve()}, or serve the module as TorchScript"
        )
    else:
        module = _made(opening, code)
        if state is not None:
            _fill(opening, module, state, weights)
    module = module.to(opening.device).eval().requires_grad_(False)
    return OpenedFile(module, _arguments(module), Results(), owner=module)


def _state(opening: Opening, weights: Path) -> Any:
    """The weights, as views of the file where it is of a kind that allows it: all instances share them."""
    if weights.suffix == ".safetensors":
        from safetensors.torch import load_file

        with reading(opening):
            return load_file(weights)
    with reading(opening), safe_pickles(opening):
        state = torch.load(
            weights, map_location="cpu", mmap=_is_archive(weights), weights_only=not opening.allows_pickles
        )
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]  # as trainers write their checkpoints
    return state


def _is_archive(weights: Path) -> bool:
    with weights.open("rb") as opened:
        return opened.read(2) == b"PK"


def _made(opening: Opening, code: Path) -> torch.nn.Module:
    source = load_module(code, code.parent)
    try:
        make = find_factory(source, torch.nn.Module)
    except NoFactoryError as error:
        raise opening.refuse(str(error)) from error
    try:
        module = make()
    except BaseException as error:
        raise opening.refuse(f"{CODE} cannot make the module: {describe(error)}") from error
    if not isinstance(module, torch.nn.Module):
        called, found = getattr(make, "__name__", FACTORY), type(module).__name__
        raise opening.refuse(f"{called}() of {CODE} gave a {found}, expected a torch.nn.Module")
    return module


def _fill(opening: Opening, module: torch.nn.Module, state: Any, weights: Path | None) -> None:
    """Gives a module its weights. They stay views of the file where their types are those of the module."""
    called = weights.name if weights is not None else ""
    if not isinstance(state, Mapping) or not all(isinstance(one, torch.Tensor) for one in state.values()):
        raise opening.refuse(
            f"{called} holds no state_dict: expected tensors by name, as module.state_dict() gives them"
        )
    own = module.state_dict()
    found = {**_aliases(own, state), **state}
    same = all(own[name].dtype == tensor.dtype for name, tensor in found.items() if name in own)
    try:
        module.load_state_dict(found, strict=True, assign=same)
    except RuntimeError as error:
        text = " ".join(str(error).split())[:600]
        raise opening.refuse(f"{called} does not fit the module that {CODE} makes: {text}") from error


def _aliases(own: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights that the file lacks since another name stands for the same tensor; safetensors keeps one of them."""
    by_memory: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for name, tensor in own.items():
        if tensor.numel():
            by_memory.setdefault((tensor.data_ptr(), tuple(tensor.shape), tensor.stride()), []).append(name)
    found: dict[str, torch.Tensor] = {}
    for names in by_memory.values():
        present = next((state[name] for name in names if name in state), None)
        if present is not None:
            found.update({name: present for name in names if name not in state})
    return found


def _arguments(module: torch.nn.Module) -> Arguments:
    kinds = inspect.Parameter
    parameters = inspect.signature(module.forward).parameters.values()
    positional = [one for one in parameters if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    needed = [one.default is kinds.empty for one in positional]
    return Arguments(
        names=tuple(one.name for one in positional),
        required=needed.index(False) if False in needed else len(needed),
        unlimited=any(one.kind is kinds.VAR_POSITIONAL for one in parameters),
    )

"""What a module writes into itself in one call and reads in the next: its buffers, and tensors beside them.

It is looked for by calls: a module whose tensors are as they were after one has no such state. One that writes, such as
a counter of a normalisation, has none either where its answers stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from alipes.signature import ANY, Port
from alipes.worker.frameworks.pytorch.binding import InputBinding
from alipes.worker.frameworks.pytorch.module import TORCH_TYPES
from alipes.worker.frameworks.pytorch.nesting import leaves

__all__ = ["HiddenState", "differs_when_repeated", "find_state"]

_OPEN_SIZE: Final = 8
"""The size of open axes in the calls of a search; the first one, of rows, is 1."""

_NEAR: Final = (1e-3, 1e-5)
"""Relative and absolute difference of equal answers: TorchScript fuses operations from the third call on."""

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class HiddenState:
    """Tensors that a module changes while it is called.

    Attributes:
        places: The module and the name of each.
        begins: What each is in the file.
        whole: Whether these are all that the module changes.
    """

    places: tuple[tuple[Any, str], ...]
    begins: tuple[torch.Tensor, ...]
    whole: bool

    @property
    def names(self) -> str:
        """Their names, for messages."""
        return ", ".join(sorted({name for _, name in self.places})) or "values beside its tensors"

    def take(self) -> tuple[torch.Tensor, ...]:
        """Copies of them."""
        return tuple(getattr(module, name).detach().clone() for module, name in self.places)

    def put(self, values: Sequence[torch.Tensor]) -> None:
        """Gives the module copies of the values."""
        for (module, name), value in zip(self.places, values, strict=True):
            setattr(module, name, value.clone())

    def begin(self) -> None:
        """Has the module begin anew."""
        self.put(self.begins)


def find_state(call: Call, owner: Any, ports: Sequence[Port], binding: InputBinding, device: str) -> HiddenState | None:
    """The state that a module keeps from one call to the next; `None` where there is none, or no call can be made.

    Args:
        call: What is called.
        owner: The module, or script, whose tensors may change.
        ports: Its inputs.
        binding: Which argument each is.
        device: Where the module is.
    """
    sets = _sets_attributes(owner)
    before = dict(_tensors(owner))
    versions = {place: (one.data_ptr(), one._version) for place, one in before.items()}
    copies = {place: one.detach().clone() for place, one in before.items()}
    if not before and not sets:
        return None
    samples = _samples(ports, device)
    if samples is None or (first := _answer(call, samples[0], binding)) is None:
        return None
    after = dict(_tensors(owner))
    changed = [
        place
        for place, one in after.items()
        if versions.get(place) != (one.data_ptr(), one._version) or place not in before
    ]
    if not changed and not sets:
        return None
    rest = [_answer(call, sample, binding) for sample in (samples[1], samples[1], samples[0])]
    known = [place for place in changed if place in before]
    state = HiddenState(
        tuple((_module(owner, path), name) for path, name in known),
        tuple(copies[place] for place in known),
        whole=len(known) == len(changed) and bool(known),
    )
    state.begin()
    last = rest[-1]
    return None if last is not None and _same(first, last) else state


def differs_when_repeated(
    call: Call, fresh: Callable[[], Call], ports: Sequence[Port], binding: InputBinding, device: str
) -> bool:
    """Whether an answer of machine code depends on calls before it, and not on chance.

    Args:
        call: The code, loaded.
        fresh: Loads it again.
        ports: Its inputs.
        binding: Which argument each is.
        device: Where the code runs.

    Raises:
        Exception: What the code raises for inputs that it does not take.
    """
    samples = _samples(ports, device)
    if samples is None:
        return False
    first = _called(call, samples[0], binding)
    for sample in (samples[1], samples[1]):
        _called(call, sample, binding)
    return not _same(first, _called(call, samples[0], binding)) and _same(first, _called(fresh(), samples[0], binding))


def _tensors(owner: Any) -> Iterator[tuple[tuple[str, str], torch.Tensor]]:
    """Buffers, and tensors that are plain attributes: the path of the module and the name."""
    for path, module in owner.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            yield (path, name), buffer
        if not isinstance(module, torch.jit.ScriptModule):
            for name, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    yield (path, name), value


def _module(owner: Any, path: str) -> Any:
    return owner.get_submodule(path) if path else owner


def _sets_attributes(owner: Any) -> bool:
    """Whether a script gives attributes new values; buffers that it changes in place are seen by their versions."""
    if not isinstance(owner, torch.jit.ScriptModule):
        return False
    return "prim::SetAttr" in str(owner.inlined_graph)


def _samples(ports: Sequence[Port], device: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two sets of inputs that differ; `None` where an input is no tensor."""
    if any(port.datatype not in TORCH_TYPES for port in ports):
        return None
    chance = torch.Generator().manual_seed(1)
    first, second = ({port.name: _sample(port, chance).to(device) for port in ports} for _ in range(2))
    return first, second


def _sample(port: Port, chance: torch.Generator) -> torch.Tensor:
    shape = [(_OPEN_SIZE if axis else 1) if size == ANY else size for axis, size in enumerate(port.shape)]
    kind = TORCH_TYPES[port.datatype]
    if kind.is_floating_point:
        return torch.rand(shape, generator=chance).to(kind)
    return torch.randint(0, 2, shape, generator=chance).to(kind)


def _answer(call: Call, inputs: Mapping[str, Any], binding: InputBinding) -> list[Any] | None:
    try:
        return _called(call, inputs, binding)
    except Exception:  # what it does not take cannot tell
        return None


def _called(call: Call, inputs: Mapping[str, Any], binding: InputBinding) -> list[Any]:
    """The results for copies of inputs, with the same chance each time."""
    arguments, named = binding.arguments({name: value.clone() for name, value in inputs.items()})
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        found = call(*arguments, **named)
        return [one.detach().clone() if isinstance(one, torch.Tensor) else one for _, one in leaves(found)]


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(_near(*pair) for pair in zip(one, other, strict=True))


def _near(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    relative, absolute = _NEAR
    near = one.shape == other.shape and torch.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True)
    return bool(near)

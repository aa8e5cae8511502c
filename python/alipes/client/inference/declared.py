"""What a client says of its model's inputs: as attributes, and called, as the objects of `tritonclient` are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, overload

from alipes.client.inference.stream_signature import Part, StateInput
from alipes.client.signature import TensorSpec
from alipes.config.named import unknown_name

__all__ = ["Declared", "DeclaredState", "Inputs"]


class _Word(str):
    """A text that `tensor.name` and `tensor.name()` both give."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


class _Sizes(tuple[int, ...]):
    """Sizes that `tensor.shape` and `tensor.shape()` both give."""

    __slots__ = ()

    def __call__(self) -> list[int]:
        return list(self)


class Declared:
    """An input that a client has found.

    Attributes:
        name: Its name.
        datatype: Its datatype in the protocol's words, such as `FP32`.
        shape: Its sizes; those that the server leaves open are the client's batch size.
        open_batch: Whether the server leaves the first size open, so that a shorter batch is as good.
    """

    def __init__(self, spec: TensorSpec) -> None:
        """Takes what is known of it."""
        self.name = _Word(spec.name)
        self.datatype = _Word(spec.datatype)
        self.shape = _Sizes(spec.shape)
        self.open_batch = spec.open_batch

    def __repr__(self) -> str:
        """Name, datatype and shape."""
        return f"<input {self.name}: {self.datatype} {list(self.shape)}>"


Shapes: TypeAlias = dict[str, tuple[int, ...]]
"""By `model/input`: the shape of each part of an update."""


class DeclaredState(tuple[Declared, Shapes]):
    """An input that is a stream: the input, and by `model/input` the shape of each part that an update is made of.

    Attributes:
        tensor: The input itself.
        parts: What an update is made of, along axis 1.
        windows: Windows that an update makes: its last axis is as many strides.
    """

    tensor: Declared
    parts: tuple[Part, ...]
    windows: int

    def __new__(cls, state: StateInput) -> DeclaredState:
        """Takes what is known of it."""
        made = super().__new__(cls, (Declared(state.tensor), _shapes(state)))
        made.tensor, made.parts, made.windows = made[0], state.parts, state.windows
        return made


def _shapes(state: StateInput) -> Shapes:
    sizes = state.tensor.shape
    shapes = {}
    for part in state.parts:
        shape = (*sizes[:1], part.channels, *sizes[2:]) if len(sizes) > 2 else sizes
        shapes.update(dict.fromkeys(part.keys or (state.tensor.name,), shape))
    return shapes


class Inputs:
    """The plain inputs of a model, in its order: by position, by name, one after the other."""

    def __init__(self, specs: Iterable[TensorSpec]) -> None:
        """Takes what is known of each."""
        self._list = [Declared(spec) for spec in specs]

    @overload
    def __getitem__(self, which: int | str) -> Declared: ...
    @overload
    def __getitem__(self, which: slice) -> list[Declared]: ...
    def __getitem__(self, which: int | str | slice) -> Any:
        """The input of a position or a name.

        Raises:
            KeyError: If there is none of that name.
            IndexError: If there is none at that position.
        """
        if not isinstance(which, str):
            return self._list[which]
        found = next((one for one in self._list if one.name == which), None)
        if found is None:
            raise unknown_name("the model", "input", which, [one.name for one in self._list])
        return found

    def __len__(self) -> int:
        """Number of inputs."""
        return len(self._list)

    def __iter__(self) -> Iterator[Declared]:
        """Each input, in the model's order."""
        return iter(self._list)

    def __repr__(self) -> str:
        """All of them."""
        return repr(self._list)

"""A request and a response as inference functions see them: arrays by name, and what a request says beside them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy.typing as npt

__all__ = ["Request", "Requests", "Response", "Responses"]

Array: TypeAlias = npt.NDArray[Any]


class _Arrays:
    """Arrays by name; what both have in common with a dictionary."""

    data: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        """The array of that name."""
        return self.data[name]

    def __setitem__(self, name: str, value: Array) -> None:
        """Sets the array of that name."""
        self.data[name] = value

    def __delitem__(self, name: str) -> None:
        """Takes the array of that name out."""
        del self.data[name]

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self.data)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.data)

    def items(self) -> ItemsView[str, Array]:
        """Names and arrays."""
        return self.data.items()

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.data.keys()

    def values(self) -> ValuesView[Array]:
        """The arrays."""
        return self.data.values()


@dataclass
class Request(_Arrays):
    """A request.

    Attributes:
        data: Its inputs.
        parameters: Its parameters, with the headers that the server forwards.
        span: A span of a trace; none is made here, so it is whatever the caller sets.
        requested_output_names: The outputs that it asks for.
    """

    data: dict[str, Array]
    parameters: dict[str, str | int | bool] | None = None
    span: Any = None
    requested_output_names: list[str] | None = None

    def traced_span(self, span_name: str) -> AbstractContextManager[Any]:
        """A context in which a span is open: the request's own, since traces are the server's work here."""
        return nullcontext(self.span)


@dataclass
class Response(_Arrays):
    """A response: its outputs."""

    data: dict[str, Array]


Requests: TypeAlias = list[Request]
Responses: TypeAlias = list[Response]

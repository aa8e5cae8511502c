"""How a server calls an exported function: once for all requests that wait, where their rows can be joined.

The class is copied into every `model.py` that is made of a function, so it uses numpy and nothing of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

__all__ = ["JointCalls"]


class JointCalls:
    """Calls a function for several requests: once, on their joined rows, or one request after the other."""

    def __init__(
        self, function: Callable[..., Any], outputs: Mapping[str, str], joins: bool, warn: Callable[[str], object]
    ) -> None:
        """Takes the function, the datatypes of its outputs by name, whether rows may be joined, and a log."""
        self._function = function
        self._outputs = outputs
        self._joins = joins
        self._warn = warn

    def answers(self, requests: Sequence[Mapping[str, Any]]) -> list[list[Any] | Exception]:
        """The outputs for each request, or what the function raised for it.

        Args:
            requests: The function's arguments by name, one mapping a request.
        """
        found: dict[int, list[Any] | Exception] = {}
        for group in self._groups(requests):
            members = [requests[at] for at in group]
            joined = self._call_joined(members) if self._joins and len(group) > 1 else None
            found.update(zip(group, joined or [self._call_alone(one) for one in members], strict=True))
        return [found[at] for at in range(len(requests))]

    def _groups(self, requests: Sequence[Mapping[str, Any]]) -> list[list[int]]:
        """Positions of requests that differ in nothing but their number of rows."""
        groups: dict[object, list[int]] = {}
        for at, arrays in enumerate(requests):
            kinds: list[object] = []
            rows = set()
            for name, array in arrays.items():
                shape = array.shape
                kinds += name, array.dtype, shape[1:]
                rows.add(shape[:1])
            groups.setdefault(tuple(kinds) if len(rows) == 1 and () not in rows else at, []).append(at)
        return list(groups.values())

    def _call_joined(self, requests: Sequence[Mapping[str, Any]]) -> list[list[Any] | Exception] | None:
        """The outputs for each of several requests from one call; None where they have to be called one by one."""
        joined = {name: numpy.concatenate([arrays[name] for arrays in requests]) for name in requests[0]}
        first = next(iter(requests[0]))
        spans, end = [], 0
        for arrays in requests:
            start, end = end, end + len(arrays[first])
            spans.append(slice(start, end))
        try:
            outputs = self._call(joined)
        except Exception:
            # One request may be at fault: alone, it fails alone.
            return None
        if any(output.shape[:1] != (end,) for output in outputs):
            self._joins = False
            shapes = ", ".join(str(list(output.shape)) for output in outputs)
            self._warn(
                f"function '{self._function.__name__}' got {end} rows of {len(requests)} requests and returned "
                f"{shapes}: from now on it is called once a request"
            )
            return None
        # `numpy.split` takes five times as long.
        return [[output[span] for output in outputs] for span in spans]

    def _call_alone(self, arrays: Mapping[str, Any]) -> list[Any] | Exception:
        try:
            return self._call(arrays)
        except Exception as error:
            return error

    def _call(self, arrays: Mapping[str, Any]) -> list[Any]:
        found = self._function(**arrays)
        if isinstance(found, dict):
            found = (
                [found[name] for name in self._outputs] if set(found) == set(self._outputs) else list(found.values())
            )
        values = found if isinstance(found, (list, tuple)) else [found]
        kinds = self._outputs.values()
        return [numpy.ascontiguousarray(value, dtype=kind) for kind, value in zip(kinds, values, strict=True)]

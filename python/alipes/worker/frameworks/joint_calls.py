"""How a framework's model is called: once for all requests that wait, where their rows can be joined.

The server has checked that the inputs of a request have one number of rows and the declared datatypes. So requests
differ in which inputs they have, and in sizes beside the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["JointCalls"]

Arrays = Mapping[str, np.ndarray]


class JointCalls:
    """Calls a model for several requests: once, on their joined rows, or one request after the other."""

    def __init__(
        self,
        function: Callable[..., Mapping[str, Any]],
        outputs: Mapping[str, str],
        joins: bool,
        warn: Callable[[str], object],
    ) -> None:
        """Takes what runs the model.

        Args:
            function: Gives the outputs by name for inputs by name.
            outputs: The datatypes of the outputs by name, as numpy calls them.
            joins: Whether rows of several requests may be joined.
            warn: Writes a line into the log.
        """
        self._function = function
        self._outputs = outputs
        self._joins = joins
        self._warn = warn

    def answers(self, requests: Sequence[Arrays]) -> list[list[Any] | Exception]:
        """The outputs for each request, or what the model raised for it.

        Args:
            requests: The inputs by name, one mapping a request.
        """
        if not self._joins or len(requests) == 1:
            return [self._call_alone(one) for one in requests]
        found: dict[int, list[Any] | Exception] = {}
        for group in self._groups(requests):
            members = [requests[at] for at in group]
            joined = self._call_joined(members) if self._joins and len(group) > 1 else None
            found.update(zip(group, joined or [self._call_alone(one) for one in members], strict=True))
        return [found[at] for at in range(len(requests))]

    def _groups(self, requests: Sequence[Arrays]) -> list[list[int]]:
        """Positions of requests that differ in nothing but their number of rows."""
        groups: dict[object, list[int]] = {}
        for at, arrays in enumerate(requests):
            key = tuple([(name, array.shape[1:]) for name, array in arrays.items()])
            groups.setdefault(key, []).append(at)
        return list(groups.values())

    def _call_joined(self, requests: Sequence[Arrays]) -> list[list[Any] | Exception] | None:
        """The outputs for each of several requests from one call; None where they have to be called one by one."""
        spans, end = [], 0
        try:
            first = next(iter(requests[0]))
            for arrays in requests:
                start, end = end, end + len(arrays[first])
                spans.append(slice(start, end))
            joined = {name: np.concatenate([arrays[name] for arrays in requests]) for name in requests[0]}
            outputs = self._call(joined)
        except Exception:
            # One request may be at fault: alone, it fails alone.
            return None
        if any(output.shape[:1] != (end,) for output in outputs):
            self._joins = False
            shapes = ", ".join(str(list(output.shape)) for output in outputs)
            self._warn(
                f"the model got {end} rows of {len(requests)} requests and returned {shapes}: from now on it is called "
                "once a request"
            )
            return None
        # `numpy.split` takes five times as long.
        return [[output[span] for output in outputs] for span in spans]

    def _call_alone(self, arrays: Arrays) -> list[Any] | Exception:
        try:
            return self._call(arrays)
        except Exception as error:
            return error

    def _call(self, arrays: Arrays) -> list[Any]:
        found = self._function(**arrays)
        return [np.ascontiguousarray(found[name], dtype=kind) for name, kind in self._outputs.items()]

"""How a framework's model is called: once for all requests that wait, where their rows can be joined.

The server has checked that the inputs of a request have one number of rows and the declared datatypes. So requests
differ in which inputs they have, and in sizes beside the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

__all__ = ["JointCalls", "split"]

Arrays = Mapping[str, np.ndarray]


class JointCalls:
    """Calls a model for several requests: once, on their joined rows, or one request after the other.

    Attributes:
        joins: Whether rows of several requests are joined.
    """

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
        self.joins = joins
        self._warn = warn

    def answers(self, requests: Sequence[Arrays]) -> list[list[Any] | Exception]:
        """The outputs for each request, or what the model raised for it.

        Args:
            requests: The inputs by name, one mapping a request.
        """
        if not self.joins or len(requests) == 1:
            return [self.alone(one) for one in requests]
        found: dict[int, list[Any] | Exception] = {}
        for group in self._groups(requests):
            members = [requests[at] for at in group]
            joined = self._call_joined(members) if self.joins and len(group) > 1 else None
            found.update(zip(group, joined or [self.alone(one) for one in members], strict=True))
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
        first = next(iter(requests[0]))
        rows = [len(arrays[first]) for arrays in requests]
        try:
            joined = {name: np.concatenate([arrays[name] for arrays in requests]) for name in requests[0]}
        except Exception:
            return None
        outputs = self.outputs(joined, rows)
        return None if outputs is None else split(outputs, rows)

    def outputs(self, joined: Arrays, rows: Sequence[int]) -> list[Any] | None:
        """The outputs of one call for several requests; None where they have to be called one by one.

        Args:
            joined: The inputs by name, row after row.
            rows: How many rows each request has.
        """
        try:
            outputs = self._call(joined)
        except Exception:
            # One request may be at fault: alone, it fails alone.
            return None
        if all(output.shape[:1] == (sum(rows),) for output in outputs):
            return outputs
        self.joins = False
        shapes = ", ".join(str(list(output.shape)) for output in outputs)
        self._warn(
            f"the model got {sum(rows)} rows of {len(rows)} requests and returned {shapes}: from now on it is called "
            "once a request"
        )
        return None

    def alone(self, arrays: Arrays, function: Callable[..., Mapping[str, Any]] | None = None) -> list[Any] | Exception:
        """The outputs for one request, or what the model raised.

        Args:
            arrays: The inputs by name.
            function: What runs the model for this request; the usual one where it is missing.
        """
        try:
            return self._call(arrays, function)
        except Exception as error:
            return error

    def _call(self, arrays: Arrays, function: Callable[..., Mapping[str, Any]] | None = None) -> list[Any]:
        found = (function or self._function)(**arrays)
        return [np.ascontiguousarray(found[name], dtype=kind) for name, kind in self._outputs.items()]


def split(outputs: Sequence[Any], rows: Sequence[int]) -> list[list[Any] | Exception]:
    """Each request's rows of the outputs.

    Args:
        outputs: Arrays with the rows of all requests.
        rows: How many each request has.
    """
    # `numpy.split` takes five times as long.
    spans = [slice(end - count, end) for count, end in zip(rows, accumulate(rows), strict=True)]
    return [[output[span] for output in outputs] for span in spans]

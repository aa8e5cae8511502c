"""Requests of one batch as one call of the function, and its result taken apart again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from alipes.worker.apps.asks import Ask
from alipes.worker.apps.plan import Plan

__all__ = ["Joined", "check_rows", "part", "parts"]


class Joined:
    """Calls a function that takes batches."""

    def __init__(self, function: Callable[..., Any], plan: Plan, warn: Callable[[str], object] | None = None) -> None:
        """Takes the function, what it takes, and the log for what its author should know."""
        self._function = function
        self._stacks = {one.name: one.stacks for one in plan.arguments}
        self._joins = not plan.why_alone
        self._any_rows = plan.any_rows
        self._warn = warn

    def answers(self, asks: Sequence[Ask]) -> list[Any]:
        """The part of the result for each request, or the exception that it gets.

        Those whose rows have one shape are one call; if it fails, each is called alone, so that one bad request fails
        nobody else. A function that gives other rows than it gets is called for one request at a time from then on.
        """
        found: dict[int, Any] = {}
        for members in self._groups(asks) if self._joins else [[at] for at in range(len(asks))]:
            answers = self._call([asks[at] for at in members])
            if isinstance(answers, Exception):
                if len(members) > 1 and isinstance(answers, OtherRows):
                    self._stop_joining(answers, len(members))
                answers = (
                    [answers]
                    if len(members) == 1
                    else [(alone[0] if isinstance(alone := self._call([asks[at]]), list) else alone) for at in members]
                )
            found.update(zip(members, answers, strict=True))
        return [found[at] for at in range(len(asks))]

    def _stop_joining(self, error: OtherRows, requests: int) -> None:
        self._joins = False
        if self._warn is not None:
            name = getattr(self._function, "__name__", "the function")
            self._warn(
                f"function '{name}' got {error.rows} rows of {requests} requests and returned {error.got}: from now on "
                "it is called once a request"
            )

    def _groups(self, asks: Sequence[Ask]) -> list[list[int]]:
        """Positions of requests that differ in nothing but their number of rows."""
        groups: dict[object, list[int]] = {}
        for at, ask in enumerate(asks):
            first = 0 if ask.rows is None else 1
            key = tuple(
                [
                    (name, value.dtype.num, value.shape[first:]) if isinstance(value, np.ndarray) else name
                    for name, value in ask.arguments.items()
                ]
            )
            groups.setdefault(key, []).append(at)
        return list(groups.values())

    def _call(self, asks: Sequence[Ask]) -> list[Any] | Exception:
        rows = [1 if ask.rows is None else ask.rows for ask in asks]
        try:
            result = self._function(**{name: self._column(name, asks) for name in asks[0].arguments})
            if self._any_rows and len(asks) == 1 and asks[0].rows is not None:
                return [result]
            check_rows(result, sum(rows))
        except Exception as error:
            return error
        take = parts(result)
        found, start = [], 0
        for ask, count in zip(asks, rows, strict=True):
            found.append(take(start if ask.rows is None else slice(start, start + count)))
            start += count
        return found

    def _column(self, name: str, asks: Sequence[Ask]) -> Any:
        """One argument for all requests."""
        if self._stacks[name]:
            pieces = [ask.arguments[name] for ask in asks]
            if len(asks) == 1 and asks[0].rows is not None:
                return pieces[0]
            if all(ask.rows is None for ask in asks):
                stacked = np.empty((len(pieces), *pieces[0].shape), pieces[0].dtype)
                for at, piece in enumerate(pieces):  # numpy's own `stack` takes three times as long for small rows
                    stacked[at] = piece
                return stacked
            return np.concatenate(
                [piece[None] if ask.rows is None else piece for ask, piece in zip(asks, pieces, strict=True)]
            )
        column: list[Any] = []
        for ask in asks:
            column += [ask.arguments[name]] if ask.rows is None else ask.arguments[name]
        return column


class OtherRows(ValueError):
    """A function returned another number of rows than it got.

    Attributes:
        rows: How many it got.
        got: What it returned, in words.
    """

    def __init__(self, rows: int, got: str) -> None:
        """Takes how many rows it got, and what it returned."""
        super().__init__(
            f"the function got {rows} row{'s' if rows != 1 else ''} and returned {got}: return one row for each"
        )
        self.rows = rows
        self.got = got


def check_rows(result: Any, rows: int) -> None:
    """Makes sure that a result has one row for each one that was given.

    Args:
        result: What the function returned.
        rows: How many rows it was given.

    Raises:
        OtherRows: If it has more or fewer.
    """
    for name, column in _columns(result):
        count = len(column) if hasattr(column, "__len__") and np.ndim(column) != 0 else None
        if count != rows:
            got = f"{count} row{'s' if count != 1 else ''}" if count is not None else f"a {type(column).__name__}"
            raise OtherRows(rows, got + name)


def _columns(result: Any) -> list[tuple[str, Any]]:
    """The parts of a result that each have all rows, with what an error says of them."""
    if isinstance(result, Mapping):
        return [(f" as {key!r}", column) for key, column in result.items()]
    if dataclasses.is_dataclass(result):
        return [(f" as {one.name!r}", getattr(result, one.name)) for one in dataclasses.fields(result)]
    if isinstance(result, tuple):
        return [(f" as value {index}", column) for index, column in enumerate(result)]
    return [("", result)]


def part(result: Any, at: int | slice) -> Any:
    """The rows of a result that one request gets."""
    return parts(result)(at)


def parts(result: Any) -> Callable[[int | slice], Any]:
    """What takes rows out of a result; its kind is looked at once for all requests.

    Args:
        result: What the function returned.
    """
    if isinstance(result, np.ndarray | list):
        return result.__getitem__
    if isinstance(result, Mapping):
        return lambda at: {key: column[at] for key, column in result.items()}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = [one.name for one in dataclasses.fields(result)]
        return lambda at: {name: getattr(result, name)[at] for name in names}
    if hasattr(result, "_fields"):
        return lambda at: type(result)(*[column[at] for column in result])
    if isinstance(result, tuple):
        return lambda at: tuple([column[at] for column in result])
    return lambda at: result[at]

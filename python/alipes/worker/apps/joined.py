"""Requests of one batch as one call of the function, and its result taken apart again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from alipes.worker.apps.asks import Ask
from alipes.worker.apps.plan import Plan

__all__ = ["Joined", "part"]


class Joined:
    """Calls a function that takes batches."""

    def __init__(self, function: Callable[..., Any], plan: Plan) -> None:
        """Takes the function and what it takes."""
        self._function = function
        self._stacks = {one.name: one.stacks for one in plan.arguments}

    def answers(self, asks: Sequence[Ask]) -> list[Any]:
        """The part of the result for each request, or the exception that it gets.

        Those whose rows have one shape are one call; if it fails, each is called alone, so that one bad request fails
        nobody else.
        """
        found: dict[int, Any] = {}
        for members in self._groups(asks):
            answers = self._call([asks[at] for at in members])
            if isinstance(answers, Exception):
                answers = (
                    [answers]
                    if len(members) == 1
                    else [(alone[0] if isinstance(alone := self._call([asks[at]]), list) else alone) for at in members]
                )
            found.update(zip(members, answers, strict=True))
        return [found[at] for at in range(len(asks))]

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
            _check(result, sum(rows))
        except Exception as error:
            return error
        take = _parts(result)
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


def _check(result: Any, rows: int) -> None:
    """Makes sure that a result has one row for each one that was given.

    Raises:
        ValueError: If it has more or fewer.
    """
    for name, column in _columns(result):
        count = len(column) if hasattr(column, "__len__") and np.ndim(column) != 0 else None
        if count != rows:
            got = f"{count} rows" if count is not None else f"a {type(column).__name__}"
            raise ValueError(f"the function got {rows} rows and returned {got}{name}: return one row for each")


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
    return _parts(result)(at)


def _parts(result: Any) -> Callable[[int | slice], Any]:
    """What takes rows out of a result; its kind is looked at once for all requests."""
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

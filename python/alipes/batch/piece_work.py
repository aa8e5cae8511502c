"""One piece: rows are read, sent some at a time, and what cannot be done is set aside by itself."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alipes.batch.folder import SetAside, UnitReport
from alipes.batch.formats.base import Array
from alipes.batch.formats.find import file_format
from alipes.batch.plan import Plan, Unit
from alipes.batch.rows import ModelRows, Rows
from alipes.batch.sender import Sender, is_trouble
from alipes.errors import AlipesError, BatchError, InferError

__all__ = ["PieceRows", "PieceWork", "Stopped", "Trouble", "check_unchanged", "joined_rows"]


class Trouble(Exception):
    """A server cannot answer now: the piece is done again, elsewhere or later."""

    def __init__(self, error: AlipesError) -> None:
        """Takes the reason."""
        super().__init__(str(error))
        self.error = error


class Stopped(Exception):
    """The worker was asked to stop in the middle of the piece."""


@dataclass(slots=True)
class PieceRows:
    """What was made of a piece.

    Attributes:
        columns: Outputs, row by row.
        units: What there is of each unit.
        set_aside: What could not be done.
    """

    columns: dict[str, Array]
    units: list[UnitReport]
    set_aside: list[SetAside]

    @property
    def rows(self) -> int:
        """Number of the rows."""
        return sum(unit.rows - len(unit.missing) for unit in self.units)


@dataclass(slots=True)
class _Slice:
    """Neighbouring rows of a unit."""

    unit: int
    first: int
    rows: Rows
    count: int


@dataclass(slots=True)
class _Request:
    """Rows that are under way."""

    slices: Sequence[_Slice]
    future: Future[Any]


@dataclass(slots=True)
class _UnitState:
    """What is known of a unit so far."""

    name: str
    rows: int = 0
    answers: list[tuple[int, Rows]] = field(default_factory=list)
    missing: dict[int, str] = field(default_factory=dict)
    spoiled: str = ""


class PieceWork:
    """Does one piece after the other with one sender."""

    def __init__(
        self,
        plan: Plan,
        rows: ModelRows,
        sender: Sender,
        in_flight: int,
        seen: Callable[[int, int], None],
    ) -> None:
        """Takes what it works with.

        Args:
            plan: The plan.
            rows: The rows of the model.
            sender: Sends requests.
            in_flight: Requests that are under way at a time; the next rows are read when one is answered.
            seen: Called with rows that were answered and bytes that were read; what it raises ends the work.
        """
        self._plan, self._rows, self._sender, self._in_flight, self._seen = plan, rows, sender, in_flight, seen
        self._size = max(rows.batch, 1)
        self._units: dict[int, _UnitState] = {}
        self._pending: list[_Slice] = []
        self._pending_rows = 0
        self._sent: deque[_Request] = deque()

    def do(self, piece: int) -> PieceRows:
        """Does a piece.

        Raises:
            Trouble: If the server cannot answer.
            Stopped: If `seen` raises it.
            BatchError: If the results cannot be put together.
        """
        self._units, self._pending, self._pending_rows = {}, [], 0
        self._sent.clear()
        for number, unit in self._plan.units_of(piece):
            self._read(number, unit)
        self._send()
        while self._sent:
            self._receive()
        return self._gathered()

    def _read(self, number: int, unit: Unit) -> None:
        name, size, changed_ns = self._plan.files[unit.file]
        state = self._units[number] = _UnitState(name)
        path = Path(self._plan.folder, name)
        try:
            check_unchanged(path, size, changed_ns)
            for block in file_format(name).read(path, (unit.start, unit.stop), self._rows.wanted):
                try:
                    rows = self._rows.rows(block)
                except (ValueError, OverflowError) as error:
                    if block.rows != 1:
                        raise
                    state.missing[state.rows] = str(error)
                    state.rows += 1
                    continue
                count = len(next(iter(rows.values())))
                self._add(number, state.rows, rows, count)
                state.rows += count
            check_unchanged(path, size, changed_ns)
        except (Trouble, Stopped, MemoryError):
            raise
        except AlipesError as error:
            if isinstance(error, InferError) and type(error).code != "Unsupported":
                state.spoiled = str(error)
            else:
                raise
        except Exception as error:  # whatever a library says of a file that is damaged
            state.spoiled = f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        self._seen(0, size if unit.stop == -1 else 0)

    def _add(self, unit: int, first: int, rows: Rows, count: int) -> None:
        at = 0
        while at < count:
            if self._pending and not _join(self._pending[0].rows, rows):
                self._send()
            more = min(count - at, self._size - self._pending_rows)
            cut = rows if more == count else {name: array[at : at + more] for name, array in rows.items()}
            self._pending.append(_Slice(unit, first + at, cut, more))
            self._pending_rows += more
            at += more
            if self._pending_rows == self._size:
                self._send()

    def _send(self) -> None:
        if not self._pending:
            return
        slices, self._pending, self._pending_rows = self._pending, [], 0
        while len(self._sent) >= self._in_flight:
            self._receive()
        self._sent.append(self._submitted(slices))

    def _submitted(self, slices: Sequence[_Slice]) -> _Request:
        rows = joined_rows([one.rows for one in slices])
        try:
            return _Request(slices, self._sender.submit(self._rows.request(rows)))
        except AlipesError as error:
            if is_trouble(error):
                raise Trouble(error) from error
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return _Request(slices, failed)

    def _receive(self) -> None:
        self._finish(self._sent.popleft())

    def _finish(self, request: _Request) -> None:
        count = sum(one.count for one in request.slices)
        try:
            outputs = self._rows.answers(request.future.result(), count)
        except (AlipesError, ValueError) as error:
            if isinstance(error, AlipesError) and is_trouble(error):
                raise Trouble(error) from error
            self._isolate(request.slices, count, error)
            return
        at = 0
        for one in request.slices:
            state = self._units[one.unit]
            cut = outputs if one.count == count else {n: array[at : at + one.count] for n, array in outputs.items()}
            state.answers.append((one.first, cut))
            at += one.count
        self._seen(count, 0)

    def _isolate(self, slices: Sequence[_Slice], count: int, error: Exception) -> None:
        """Finds the rows that cannot be answered: half of a request at a time is sent again."""
        if count == 1:
            self._units[slices[0].unit].missing[slices[0].first] = str(error)
            self._seen(0, 0)
            return
        for half in _halves(slices, count):
            self._finish(self._submitted(half))

    def _gathered(self) -> PieceRows:
        answers: list[Rows] = []
        units, set_aside = [], []
        for number, state in self._units.items():
            if state.spoiled:
                units.append(UnitReport(number, 0))
                set_aside.append(SetAside(state.name, number, -1, state.spoiled))
                continue
            answers += [rows for _, rows in sorted(state.answers, key=lambda one: one[0])]
            missing = sorted(state.missing)
            units.append(UnitReport(number, state.rows, missing))
            set_aside += [SetAside(state.name, number, row, state.missing[row]) for row in missing]
        return PieceRows(self._columns(answers), units, set_aside)

    def _columns(self, answers: Sequence[Rows]) -> dict[str, Array]:
        if not answers:
            return {}
        try:
            return joined_rows(answers)
        except ValueError as error:
            if self._plan.form != "jsonl":
                raise BatchError(
                    f"rows of the results differ in shape ({error}): write them as lines of JSON, with form jsonl"
                ) from error
            return {name: _ragged([row for rows in answers for row in rows[name]]) for name in answers[0]}


def joined_rows(blocks: Sequence[Mapping[str, Array]]) -> Rows:
    """Rows behind each other.

    Raises:
        ValueError: If their shapes differ.
    """
    if len(blocks) == 1:
        return dict(blocks[0])
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _ragged(rows: list[Any]) -> Array:
    column = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        column[number] = row
    return column


def _join(first: Rows, second: Rows) -> bool:
    return first.keys() == second.keys() and all(first[name].shape[1:] == second[name].shape[1:] for name in first)


def _halves(slices: Sequence[_Slice], count: int) -> list[list[_Slice]]:
    """The rows of a request in two requests."""
    first: list[_Slice] = []
    second: list[_Slice] = []
    left = count // 2
    for one in slices:
        here = min(left, one.count)
        if here:
            first.append(_Slice(one.unit, one.first, {n: array[:here] for n, array in one.rows.items()}, here))
        if here < one.count:
            rest = {n: array[here:] for n, array in one.rows.items()}
            second.append(_Slice(one.unit, one.first + here, rest, one.count - here))
        left -= here
    return [first, second]


def check_unchanged(path: Path, size: int, changed_ns: int) -> None:
    """Refuses a file that is no longer what was planned.

    Raises:
        ValueError: If it was changed, or is gone.
    """
    try:
        state = os.stat(path)  # noqa: PTH116 - twice for each of many small files
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    if (state.st_size, state.st_mtime_ns) != (size, changed_ns):
        raise ValueError("it was changed after the run was planned")

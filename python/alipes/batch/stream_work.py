"""One piece of a time series: its updates as a sequence of their own, which begins early enough for its state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.batch.folder import SetAside, UnitReport
from alipes.batch.formats.base import Array
from alipes.batch.formats.series import open_series
from alipes.batch.piece_work import PieceRows, Stopped, Trouble, check_unchanged, joined_rows
from alipes.batch.plan import Plan
from alipes.batch.rows import Rows
from alipes.batch.sender import StreamSender, is_trouble
from alipes.client.signature import Signature
from alipes.errors import AlipesError, InferError

__all__ = ["StreamWork"]

_READ_UPDATES: Final = 64
"""Updates that are read of a file at a time."""


class StreamWork:
    """Does one piece after the other over one stream of gRPC."""

    def __init__(
        self,
        plan: Plan,
        signature: Signature,
        sender: StreamSender,
        in_flight: int,
        seen: Callable[[int, int], None],
    ) -> None:
        """Takes what it works with.

        Args:
            plan: The plan.
            signature: What the model answers.
            sender: Sends updates.
            in_flight: Updates that are under way at a time.
            seen: Called with rows that were answered and bytes that were read; what it raises ends the work.
        """
        assert plan.stream is not None
        self._plan, self._overlap, self._signature = plan, plan.stream, signature
        self._client, self._in_flight, self._seen = sender.client, in_flight, seen

    def do(self, piece: int) -> PieceRows:
        """Does a piece.

        Raises:
            Trouble: If the server cannot answer.
            Stopped: If `seen` raises it.
        """
        ((number, unit),) = self._plan.units_of(piece)
        name, size, changed_ns = self._plan.files[unit.file]
        path = Path(self._plan.folder, name)
        try:
            check_unchanged(path, size, changed_ns)
            rows = list(self._answers(piece, path, unit.start, unit.stop))
            check_unchanged(path, size, changed_ns)
        except (Trouble, Stopped, MemoryError):
            raise
        except Exception as error:  # whatever a library says of a file that is damaged
            if isinstance(error, AlipesError) and not isinstance(error, InferError):
                raise
            reason = str(error) if isinstance(error, ValueError | AlipesError) else f"{type(error).__name__}: {error}"
            return PieceRows({}, [UnitReport(number, 0)], [SetAside(name, number, -1, reason)])
        columns = joined_rows(rows) if rows else {}
        count = len(next(iter(columns.values()))) if columns else 0
        return PieceRows(columns, [UnitReport(number, count)], [])

    def _answers(self, piece: int, path: Path, start: int, stop: int) -> Iterator[Rows]:
        """What the updates of a piece are answered with; what those before it are is dropped."""
        first = max(0, start - self._overlap.updates)
        sent: deque[tuple[int, int, Future[Any]]] = deque()
        try:
            for number, update in self._updates(path, first, stop):
                while len(sent) >= self._in_flight:
                    yield from self._received(sent, start)
                begins, ends = number == first, number == stop - 1
                future = self._client.submit(
                    update, sequence_id=self._plan.sequence(piece), sequence_start=begins, sequence_end=ends
                )
                sent.append((number, update.shape[-1], future))
            while sent:
                yield from self._received(sent, start)
        except AlipesError as error:
            if is_trouble(error):
                raise Trouble(error) from error
            for _, _, future in sent:  # all of them are answered, with errors
                with suppress(AlipesError):
                    future.result()
            raise

    def _updates(self, path: Path, first: int, stop: int) -> Iterator[tuple[int, Array]]:
        size = self._overlap.samples
        with open_series(path) as series:
            for begin in range(first, stop, _READ_UPDATES):
                end = min(begin + _READ_UPDATES, stop)
                block = series.read(begin * size, end * size)
                self._seen(0, block.nbytes)
                for number in range(begin, end):
                    at = (number - begin) * size
                    yield number, block[..., at : at + size]

    def _received(self, sent: deque[tuple[int, int, Future[Any]]], start: int) -> Iterator[Rows]:
        number, samples, future = sent.popleft()
        outputs = future.result()
        if number < start:
            return
        strides = -(-samples // (self._overlap.samples // self._overlap.strides))
        named = outputs if isinstance(outputs, Mapping) else {next(iter(self._signature.outputs)): outputs}
        rows = {name: self._rows(name, array, strides) for name, array in named.items()}
        self._seen(strides, 0)
        yield rows

    def _rows(self, name: str, array: Array, strides: int) -> Array:
        """A row for each stride: windows are rows already, the mean of a stream has chunks along its last axis."""
        if self._signature.outputs[name].shape[:1] in ((-1,), (self._overlap.strides,)) and len(array) == strides:
            return array
        return np.stack(np.split(array, strides, -1))

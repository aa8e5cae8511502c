"""The live view of a monitor, in a terminal or a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from alipes.monitor.board import Board
from alipes.monitor.judge import Verdict

__all__ = ["Screen", "picture_of"]

LOOKS_A_SECOND: Final = 4


class Screen:
    """Shows a board until its block ends. Where the output is no terminal, it is shown once, at the end."""

    def __init__(
        self,
        board: Board,
        verdict: Callable[[], Verdict],
        console: Console | None = None,
        shown: Callable[[], bool] = lambda: True,
    ) -> None:
        """Shows nothing yet.

        Args:
            board: What is shown.
            verdict: What holds the work up.
            console: Where; standard output by default.
            shown: Whether there is something to show at the end, where the output is no terminal.
        """
        self._board = board
        self._verdict = verdict
        self._shown = shown
        self._console = console or Console()
        # A notebook shows what changes too; for rich it is no terminal.
        self._is_live = self._console.is_terminal or self._console.is_jupyter
        self._live = Live(
            get_renderable=self._now, refresh_per_second=LOOKS_A_SECOND, console=self._console, transient=False
        )

    def __enter__(self) -> Self:
        """Begins."""
        if self._is_live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last state on the screen."""
        if self._is_live:
            self._live.stop()
        elif kind is None and self._shown():
            # `Live` would end without a line end, and what is printed next would run into it.
            self._console.print(self._now())

    def _now(self) -> RenderableType:
        return picture_of(self._board, self._verdict(), time.time())


def picture_of(board: Board, verdict: Verdict, now: float) -> RenderableType:
    """The board as a table, and what holds the work up beneath it."""
    lines = board.lines(now)
    several = len({line.ip for line in lines}) > 1
    table = Table(box=None, pad_edge=False)
    for heading in ("model", *(["server"] if several else [])):
        table.add_column(heading, overflow="fold")
    for heading in ("executions/s", "queue us", "model us", "executions"):
        table.add_column(heading, justify="right")
    for line in lines:
        figures = (f"{line.a_second:,.0f}", f"{line.queue_us:,.0f}", f"{line.compute_us:,.0f}", f"{line.total:,}")
        # Names are other people's: what looks like markup in them is none.
        table.add_row(Text(line.model), *([Text(line.ip)] if several else []), *figures)
    return Group(table, Text(str(verdict)))

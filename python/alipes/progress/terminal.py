"""A bar on the terminal, drawn with rich on the error output: what a script prints can still be piped."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

__all__ = ["TerminalLine"]

_WIDTH: Final = 24
_A_SECOND: Final = 5
"""How often it is drawn: often enough to be seen moving."""


class TerminalLine:
    """One bar, gone when the work is done."""

    shown: Final = True

    def __init__(self, title: str, total: float | None) -> None:
        """Draws nothing yet."""
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(_WIDTH),
            TaskProgressColumn(),
            TextColumn("{task.fields[step]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=_A_SECOND,
            # What is printed meanwhile stands above the bar, if it goes to the same screen.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        )
        self._task = self._progress.add_task(title, total=total, step="")

    def __enter__(self) -> Self:
        """Draws it."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes it away."""
        self._progress.stop()

    def step(self, what: str, total: float | None = None) -> None:
        """Say what is done now, and of how much where that is known."""
        self._progress.update(self._task, step=what, total=total, completed=0, refresh=True)

    def advance(self, amount: float = 1) -> None:
        """Say that so much more of the step is done."""
        self._progress.advance(self._task, amount)

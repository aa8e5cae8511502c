"""Work that takes long, and what it says of itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from alipes.progress.place import Place, place

__all__ = ["Silent", "Task", "current", "line", "task"]


class Task(Protocol):
    """Work that is under way."""

    @property
    def shown(self) -> bool:
        """Whether it is displayed. If not, counting can be skipped."""

    def step(self, what: str, total: float | None = None) -> None:
        """Say what is done now, and of how much where that is known."""

    def advance(self, amount: float = 1) -> None:
        """Say that so much more of the step is done."""


class Silent:
    """Work without a display."""

    shown: Final = False

    def step(self, what: str, total: float | None = None) -> None:
        """Nothing."""

    def advance(self, amount: float = 1) -> None:
        """Nothing."""


_SILENT: Final = Silent()

# Code that works inside a task, such as a store that is uploaded to, finds it here: exporters and stores may be others'
# own, and take no argument for it.
_current: ContextVar[Task] = ContextVar("alipes_progress", default=_SILENT)

# There is one line. Work that begins as a part of other work is a step of it; beside other work, it goes without.
_line: Final = threading.Lock()


def current() -> Task:
    """The work that the caller is a part of."""
    return _current.get()


@contextmanager
def task(title: str, total: float | None = None, *, show: bool | None = None) -> Iterator[Task]:
    """Shows work for as long as the block runs.

    Args:
        title: What it is.
        total: Of how much, where that is known.
        show: False shows nothing. Otherwise it is shown where there is a terminal or a notebook.

    Returns:
        The work, to say its steps. What it calls finds it by `current`.
    """
    with line(title, total, show=show) as shown:
        token = _current.set(shown)
        try:
            yield shown
        finally:
            _current.reset(token)


@contextmanager
def line(title: str, total: float | None = None, *, show: bool | None = None) -> Iterator[Task]:
    """The same for work whose parts do not say their steps, such as a generator's: its callers come and go."""
    where = Place.NOWHERE if show is False else place()
    if where is Place.NOWHERE:
        yield _SILENT
    elif _line.acquire(blocking=False):
        try:
            with _drawn(where, title, total) as drawn:
                yield drawn
        finally:
            _line.release()
    else:
        whole = current()
        whole.step(title, total)
        yield whole


def _drawn(where: Place, title: str, total: float | None) -> AbstractContextManager[Task]:
    if where is Place.NOTEBOOK:
        from alipes.progress.notebook import NotebookLine

        return NotebookLine(title, total)
    from alipes.progress.terminal import TerminalLine

    return TerminalLine(title, total)

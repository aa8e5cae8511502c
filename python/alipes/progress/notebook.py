"""A line below a notebook's cell. It is text: bars that are widgets need a package that notebooks may lack."""

from __future__ import annotations

import time
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["NotebookLine"]

_APART_S: Final = 0.2
"""Between two changes within a step: each is a message to the browser."""


class NotebookLine:
    """One line, empty when the work is done."""

    shown: Final = True

    def __init__(self, title: str, total: float | None) -> None:
        """Shows nothing yet."""
        self._title, self._step = title, ""
        self._total, self._done = total, 0.0
        self._begun = self._updated_s = time.monotonic()
        self._display: Any = None

    def __enter__(self) -> Self:
        """Shows it."""
        display = import_module("IPython.display").display
        self._display = display(self._content(), raw=True, display_id=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Empties it."""
        self._display.update({"text/plain": ""}, raw=True)

    def step(self, what: str, total: float | None = None) -> None:
        """Say what is done now, and of how much where that is known."""
        self._step, self._total, self._done = what, total, 0.0
        self._update()

    def advance(self, amount: float = 1) -> None:
        """Say that so much more of the step is done."""
        self._done += amount
        if time.monotonic() - self._updated_s >= _APART_S:
            self._update()

    def _update(self) -> None:
        self._updated_s = time.monotonic()
        self._display.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        share = f"{min(self._done / self._total, 1.0):.0%}" if self._total else ""
        status = " ".join(part for part in (share, self._step) if part)
        passed_s = time.monotonic() - self._begun
        return {"text/plain": f"{self._title}{': ' if status else ''}{status} ({passed_s:.0f} s)"}

"""A load under way: its age, and how it ends before its time.

One thread carries a load out. Any thread may cancel it: what the load has begun, a process say, is ended by those who
began it, through `Load.ending`; what cannot be ended is left to itself, and its result is dropped when it comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from alipes.errors import ModelLoadError
from alipes.types import ModelKey

__all__ = ["SUPERSEDED", "Load", "LoadCancelled"]

SUPERSEDED: Final = "Newer operation has been applied to the model lifecycle, current load operation is out-dated."
"""Triton's text for a load during which its model was unloaded."""


class LoadCancelled(ModelLoadError):
    """A load was ended before its time."""


class Load:
    """One load of a model, or one request that loads models.

    Attributes:
        key: The model.
        reports: How often the log was told that it is still under way.
    """

    def __init__(self, key: ModelKey | None = None, *, timeout_s: float = 0.0) -> None:
        """A load that begins now.

        Args:
            key: The model; where left out, nobody asks for it.
            timeout_s: Longest time that it may take, in seconds, without the time in which it waits for other loads; 0
                sets no limit.
        """
        self.key = key if key is not None else ModelKey("")
        self.reports = 0
        self._timeout_s = timeout_s
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._reason = ""
        self._hooks: list[Callable[[], object]] = []
        self._interrupted = threading.Event()

    @property
    def age_s(self) -> float:
        """For how long it has been under way, in seconds."""
        return time.monotonic() - self._began

    @property
    def remaining_s(self) -> float | None:
        """The time that it has left, in seconds, at least 0; ``None`` without limit."""
        return max(0.0, self._timeout_s - self.age_s) if self._timeout_s else None

    @property
    def is_cancelled(self) -> bool:
        """Whether it is to end before its time."""
        return bool(self._reason)

    @property
    def is_superseded(self) -> bool:
        """Whether it was cancelled because its model is to be unloaded."""
        return self._reason == SUPERSEDED

    def cancel(self, reason: str = SUPERSEDED) -> None:
        """Has it end now, and ends what it has begun. The first reason counts."""
        with self._lock:
            if self._reason:
                return
            self._reason = reason
            hooks, self._hooks = self._hooks, []
        self._interrupted.set()
        for hook in hooks:
            hook()

    def cancel_if_late(self) -> None:
        """Cancels it where its time is up."""
        if self.remaining_s == 0.0:
            self.cancel(f"the load took longer than the {self._timeout_s:g} s that --model-load-timeout-secs allows")

    def check(self) -> None:
        """Returns where it may go on.

        Raises:
            LoadCancelled: If it is to end.
        """
        if self._reason:
            raise LoadCancelled(self._reason, model=self.key.name, code="UNAVAILABLE")

    @contextmanager
    def ending(self, hook: Callable[[], object]) -> Iterator[None]:
        """Has a cancellation call a function, from whatever thread, for the length of a block; at once if it has come.

        Args:
            hook: Ends what the block waits for. It must not wait, and may be called once the block has ended.
        """
        with self._lock:
            cancelled = bool(self._reason)
            if not cancelled:
                self._hooks.append(hook)
        if cancelled:
            hook()
        try:
            yield
        finally:
            with self._lock:
                if hook in self._hooks:
                    self._hooks.remove(hook)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block in which it waits for other loads: that time is not its own."""
        since = time.monotonic()
        try:
            yield
        finally:
            self._began += time.monotonic() - since

    def pause(self, span_s: float) -> None:
        """Waits, but not once it is cancelled or `interrupt` is called."""
        self._interrupted.wait(span_s)

    def interrupt(self) -> None:
        """Ends its pauses, this one and later ones."""
        self._interrupted.set()

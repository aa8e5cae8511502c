"""The steps of loads that may take for ever: each runs on a thread of its own, so that a load can end without it.

An engine that reads a model cannot be stopped, nor can a read from a disk that is gone. A load that is cancelled, or
whose time is up, leaves such a step alone: the loader's thread goes on with other models, and what the step brings in
the end is dropped.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from alipes.config.limits import MAX_ABANDONED_OF_MODEL, MAX_ABANDONED_STEPS
from alipes.errors import ModelLoadError
from alipes.model_load import Load
from alipes.server.log import log
from alipes.types import ModelKey

__all__ = ["Steps"]

T = TypeVar("T")

# The interval of the log lines about a load that goes on and on.
REPORT_S: Final = 60.0

# How long a cancelled load waits for its step: what can be ended, such as a process, has ended by then.
GRACE_S: Final = 2.0


class Steps:
    """Runs steps, and knows those that were left alone."""

    def __init__(self, *, report_s: float = REPORT_S, grace_s: float = GRACE_S) -> None:
        """Runs nothing yet.

        Args:
            report_s: Interval of the log lines about a load that goes on and on, in seconds.
            grace_s: How long a cancelled load waits for its step, in seconds.
        """
        self._report_s = report_s
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._abandoned: Counter[ModelKey] = Counter()

    @property
    def abandoned(self) -> int:
        """The number of steps that were left alone and have not ended."""
        return self._abandoned.total()

    def run(self, load: Load, call: Callable[[], T], drop: Callable[[T], object] | None = None) -> T:
        """The result of a call, unless the load ends before it.

        Args:
            load: What the call is a step of.
            call: The call. It may run on after this has raised.
            drop: Takes a result that comes too late.

        Raises:
            LoadCancelled: If the load is cancelled, or its time is up.
            ModelLoadError: If too many steps were left alone.
        """
        load.check()
        self._check_room(load.key)
        step = _Step(call, drop)
        with load.ending(step.wake):
            step.start()
            while not step.has_ended and not load.is_cancelled:
                step.wait(self._pause_s(load))
                self._report(load)
                load.cancel_if_late()
        if load.is_cancelled:
            if not step.settle(self._grace_s):
                self._abandon(step, load.key)
            load.check()
        return step.take()

    def _pause_s(self, load: Load) -> float:
        """Until the next line of the log, or the end of the load's time."""
        until_report = self._report_s - load.age_s % self._report_s
        remaining = load.remaining_s
        return until_report if remaining is None else min(until_report, remaining)

    def _report(self, load: Load) -> None:
        age_s = load.age_s
        due = int(age_s / self._report_s)
        if due > load.reports:
            load.reports = due
            log.warning("'%s' has been loading for %d s", load.key.name, age_s)

    def _check_room(self, key: ModelKey) -> None:
        with self._lock:
            of_model, of_all = self._abandoned[key], self._abandoned.total()
            if not of_model:
                del self._abandoned[key]  # clients choose names, and choose new ones without end
        if of_model >= MAX_ABANDONED_OF_MODEL or of_all >= MAX_ABANDONED_STEPS:
            whose = f"of model '{key.name}' " if of_model >= MAX_ABANDONED_OF_MODEL else ""
            count = of_model if whose else of_all
            text = f"{count} earlier loads {whose}were ended before their time and still hold a thread each"
            raise ModelLoadError(text, model=key.name, code="UNAVAILABLE")

    def _abandon(self, step: _Step[T], key: ModelKey) -> None:
        with self._lock:
            self._abandoned[key] += 1
        log.warning("'%s' still loads in vain: its load was ended, but what it waits for cannot be", key.name)
        step.abandon(lambda: self._forget(key))

    def _forget(self, key: ModelKey) -> None:
        with self._lock:
            self._abandoned[key] -= 1
            if not self._abandoned[key]:
                del self._abandoned[key]


class _Step(Generic[T]):
    """One call on a thread of its own."""

    def __init__(self, call: Callable[[], T], drop: Callable[[T], object] | None) -> None:
        self._call = call
        self._drop = drop
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._when_gone: Callable[[], object] | None = None

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def start(self) -> None:
        # Daemon: a step that never ends must not outlive the process.
        threading.Thread(target=self._run, name="alipes-load", daemon=True).start()

    def wait(self, timeout_s: float) -> None:
        """Until the call has ended, `wake` is called or the time is up."""
        self._changed.wait(timeout_s)

    def wake(self) -> None:
        self._changed.set()

    def take(self) -> T:
        """What the call returned or raised."""
        error, self._error = self._error, None
        if error is None:
            return self._result.pop()
        try:
            raise error
        finally:
            del error  # its traceback holds this frame

    def settle(self, timeout_s: float) -> bool:
        """Drops the outcome of a call that ends in time; false for one that does not."""
        if not self._ended.wait(timeout_s):
            return False
        self._drop_outcome()
        return True

    def abandon(self, when_gone: Callable[[], object]) -> None:
        """Has the outcome dropped when it comes."""
        with self._lock:
            if not self.has_ended:
                self._when_gone = when_gone
                return
        self._drop_outcome()
        when_gone()

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        with self._lock:
            self._ended.set()
            when_gone = self._when_gone
        self._changed.set()
        if when_gone is not None:
            self._drop_outcome()
            when_gone()

    def _drop_outcome(self) -> None:
        self._error = None
        results, self._result = self._result, []
        for result in results:
            if self._drop is not None:
                self._drop(result)

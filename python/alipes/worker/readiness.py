"""Whether the model reports that it is ready: its `is_ready`, called by the server through the link.

It runs on a thread of its own, beside `execute`: a model that has just begun a long execution is asked all the same,
and does not look dead. One check runs at a time; the server joins concurrent probes.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from alipes.worker import failure

if TYPE_CHECKING:
    from alipes._core import WorkerLink
    from alipes.worker.executor import Executor

__all__ = ["Readiness"]

_WARNING: Final = 1  # level of a log line

# A check that hangs must not keep a worker from leaving; `finalize` should not meet one that is about to end.
_END_WITHIN_S: Final = 2.0


class Readiness:
    """Answers the server's checks for a model that has a say in them."""

    def __init__(self, link: WorkerLink, check: Callable[[], object], executor: Executor, file: str) -> None:
        """Takes the link, the model's `is_ready`, the executor of its coroutines, and the file named in log lines."""
        self._link = link
        self._check = check
        self._file = file
        # A coroutine belongs on the loop on which the model's others run, which then has to run without `execute`.
        self._coroutines = executor.coroutines() if inspect.iscoroutinefunction(check) else None
        self._logged = ""
        self._thread = threading.Thread(target=self._run, name="alipes-readiness", daemon=True)

    @classmethod
    def of(cls, link: WorkerLink, model: Any, executor: Executor, file: str) -> Readiness | None:
        """What answers for a model; ``None`` where it has no `is_ready`."""
        check = getattr(model, "is_ready", None)
        return cls(link, check, executor, file) if callable(check) else None

    def start(self) -> None:
        """Begins to wait for checks."""
        self._thread.start()

    def end(self) -> None:
        """Waits for the check that runs, for a moment. For after the server has asked the worker to leave."""
        self._thread.join(_END_WITHIN_S)

    def _run(self) -> None:
        last = 0
        while (number := self._link.next_check(last)) is not None:
            self._link.checked(number, self._is_ready())
            last = number

    def _is_ready(self) -> bool:
        try:
            ready = self._check()
            if isinstance(ready, Coroutine):
                ready = self._wait(ready)
        except BaseException as error:
            text = f"is_ready() raised {failure.describe(error)}"
            failure.forget(error)
            return self._refuse(text)
        if not isinstance(ready, bool):
            return self._refuse(f"is_ready() must return a boolean value, found type '{type(ready)}'.")
        self._logged = ""
        return ready

    def _wait(self, coroutine: Coroutine[Any, Any, object]) -> object:
        if self._coroutines is not None:
            return self._coroutines.wait(coroutine)
        import asyncio  # slow to import, and hardly ever needed here

        return asyncio.run(coroutine)

    def _refuse(self, text: str) -> bool:
        """Logs why the model is not ready: once, not with every probe."""
        if text != self._logged:
            self._logged = text
            self._link.log(_WARNING, self._file, 0, f"the model is not ready: {text}")
        return False

"""Processes that hand packages on to each other through queues: `with source >> step as pipeline`."""

from __future__ import annotations

import inspect
import logging
import multiprocessing
import queue
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from alipes.monitor.throttle import Throttle
from alipes.monitor.wrapper import ExceptionWrapper

__all__ = ["Pipeline", "PipelineProcess"]

_LOOK_S: Final = 0.2
"""How often a process that waits for a package looks whether it is to stop."""

_log = logging.getLogger("alipes.monitor")


class PipelineProcess:
    """A process that takes packages from `in_q` and puts what it makes of them into `out_q`.

    A subclass says in `process` what is made of a package, or in `get_package` where packages come from. What either
    raises ends the process and is raised again where its packages are taken; `StopIteration` ends that quietly.
    """

    def __init__(self, name: str, rate: float | None = None, join_timeout: float = 10) -> None:
        """Starts nothing yet.

        Args:
            name: Name of the process.
            rate: Packages a second, at most; `None` for as many as there are.
            join_timeout: Seconds that it has to end by itself.
        """
        self.name = name
        self.rate = rate
        self.join_timeout = join_timeout
        self.in_q: Any = multiprocessing.Queue()
        self.out_q: Any = multiprocessing.Queue()
        self._stop_event = multiprocessing.Event()
        self._process: Any = None

    def get_package(self) -> Any:
        """The next package, as soon as there is one."""
        while not self._stop_event.is_set():
            try:
                package = self.in_q.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(package, ExceptionWrapper):
                package.reraise()
            return package
        raise StopIteration

    def process(self, *package: Any) -> None:
        """Makes something of a package and puts it into `out_q`: here, the package itself."""
        self.out_q.put(package[0] if len(package) == 1 else package)

    def run(self) -> None:
        """What the process does: packages, one after the other, until it is stopped or raises."""
        turns = Throttle(self.rate) if self.rate else None
        try:
            while not self._stop_event.is_set():
                package = self.get_package()
                if turns is not None:
                    turns.throttle()
                _hand_over(self.process, package)
        except BaseException as error:
            self.out_q.put(ExceptionWrapper(error))
        if self._stop_event.is_set():
            self.out_q.cancel_join_thread()  # there may be no reader any more

    def start(self) -> None:
        """Starts the process."""
        self._process = multiprocessing.Process(target=self.run, name=self.name, daemon=True)
        self._process.start()

    def is_alive(self) -> bool:
        """Whether it runs.

        Raises:
            ValueError: If it was stopped: then there is no process any more.
        """
        return self._process is not None and bool(self._process.is_alive())

    @property
    def pid(self) -> int | None:
        """The process id."""
        return None if self._process is None else self._process.pid

    @property
    def exitcode(self) -> int | None:
        """The exit status; `None` while it runs."""
        return None if self._process is None else self._process.exitcode

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""
        self._process.join(timeout)

    def stop(self) -> None:
        """Tells it to stop, waits for `join_timeout` seconds, and then insists."""
        self._stop_event.set()
        if self._process is None:
            return
        self.join(self.join_timeout)
        if self.is_alive():
            _log.warning("the process %s did not end within %g seconds and is terminated", self.name, self.join_timeout)
            self._process.terminate()
            self.join()
        self._process.close()

    def __enter__(self) -> Self:
        """Starts the process."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()

    def __iter__(self) -> Iterator[Any]:
        """What comes out, as it comes, until the process raises `StopIteration`."""
        return self

    def __next__(self) -> Any:
        """What comes out next.

        Raises:
            StopIteration: If nothing will.
            BaseException: Whatever was raised in the process.
        """
        package = self.out_q.get()
        if isinstance(package, ExceptionWrapper):
            package.reraise()
        if isinstance(package, StopIteration) or package is StopIteration:
            raise StopIteration
        return package

    def __rshift__(self, other: PipelineProcess | Pipeline) -> Pipeline:
        """The pipeline of this process and what comes behind it."""
        return Pipeline([self]) >> other


class Pipeline:
    """Processes, each of which takes what the one before it puts out."""

    def __init__(self, processes: Sequence[PipelineProcess]) -> None:
        """Joins the processes.

        Raises:
            TypeError: If one of them is none.
        """
        self.processes = list(processes)
        for process in self.processes:
            if not isinstance(process, PipelineProcess):
                raise TypeError(f"{type(process).__name__} is no PipelineProcess and cannot be part of a pipeline")
        for before, after in zip(self.processes, self.processes[1:], strict=False):
            after.in_q = before.out_q

    def __rshift__(self, other: PipelineProcess | Pipeline) -> Pipeline:
        """The pipeline that goes on with a process or a pipeline."""
        if isinstance(other, Pipeline):
            return Pipeline([*self.processes, *other.processes])
        return Pipeline([*self.processes, other])

    def __enter__(self) -> Self:
        """Starts every process, the last one first, so that no process waits for its reader."""
        started: list[PipelineProcess] = []
        try:
            for process in reversed(self.processes):
                process.__enter__()
                started.append(process)
        except BaseException:
            for process in started:
                process.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops every process, the first one first."""
        for process in self.processes:
            process.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[Any]:
        """What comes out at the end."""
        return iter(self.processes[-1])


def _hand_over(process: Any, package: Any) -> None:
    """Calls `process`: a tuple or a list as its arguments where they fit, else as one."""
    if isinstance(package, (tuple, list)):
        try:
            inspect.signature(process).bind(*package)
        except TypeError:
            process(package)
        else:
            process(*package)
    else:
        process(package)

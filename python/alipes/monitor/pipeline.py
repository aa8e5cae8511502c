"""Processes that hand packages on to each other through queues: `with source >> step as pipeline`."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from alipes.errors import MonitorError
from alipes.monitor.packages import Turns, hand_over, opened
from alipes.monitor.throttle import Throttle
from alipes.monitor.wrapper import ExceptionWrapper

__all__ = ["Pipeline", "PipelineProcess"]

_LOOK_S: Final = 0.2
"""How often a process that waits for a package looks whether it is to stop, and a reader whether its process lives."""

_log = logging.getLogger("alipes.monitor")


class PipelineProcess:
    """A process that takes packages from `in_q` and puts what it makes of them into `out_q`.

    A subclass says in `process` what is made of a package, or in `get_package` where packages come from; `None` is no
    package and is passed over. What either raises goes to `cleanup`, which ends the process, and is raised again where
    its packages are taken; `StopIteration` ends that quietly.

    Attributes:
        throttle: What `run` iterates over, a turn for each package, until the process is to stop.
        logger: A log of its own below `alipes.monitor`; in the process its name has the process id as well.
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
        self.throttle: Iterable[object] = (
            Throttle(rate, condition=self._stop_event.is_set) if rate else Turns(self._stop_event.is_set)
        )
        self.logger = _log.getChild(name)
        self._daemon = True
        self._owner = os.getpid()
        self._closed = False
        self._stopped_itself = False
        self._upstream: PipelineProcess | None = None
        self._process: Any = None

    @property
    def stopped(self) -> bool:
        """Whether it is to stop: it was told so, failed or was terminated."""
        return bool(self._stop_event.is_set())

    @property
    def daemon(self) -> bool:
        """Whether it ends with the script, and may not have processes of its own. Set before it starts."""
        return self._daemon

    @daemon.setter
    def daemon(self, daemon: bool) -> None:
        if self._process is not None:
            raise RuntimeError(f"the process {self.name} has started: set daemon before it starts")
        self._daemon = daemon

    def get_package(self) -> Any:
        """The next package, as soon as there is one."""
        while not self._stop_event.is_set():
            try:
                package = self.in_q.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            return opened(package)
        raise StopIteration

    def cleanup(self, exc: BaseException) -> None:
        """What the process does with its exception: logs it, hands it on, and stops."""
        if not isinstance(exc, StopIteration):
            self.logger.error("the process %s has failed: %s: %s", self.name, type(exc).__name__, exc)
        self.out_q.put(ExceptionWrapper(exc))
        self._stop_event.set()

    def process(self, *package: Any) -> None:
        """Makes something of a package and puts it into `out_q`: here, the package itself."""
        self.out_q.put(package[0] if len(package) == 1 else package)

    def run(self) -> None:
        """What the process does: packages, one after the other, until it is stopped or raises.

        Raises:
            SystemExit: With status 1 if it has failed.
        """
        requested = False
        try:
            for _ in self.throttle:
                package = self.get_package()
                if package is not None:
                    hand_over(self.process, package)
            requested = True
        except BaseException as error:
            requested = self.stopped
            self.cleanup(error)
            if not isinstance(error, StopIteration):
                sys.exit(1)
        finally:
            if requested and not self._stopped_itself:
                self.out_q.cancel_join_thread()  # there may be no reader any more

    def start(self) -> None:
        """Starts the process."""
        self._owner = os.getpid()
        process = multiprocessing.Process(target=self._main, name=self.name, daemon=self._daemon)
        process.start()
        self._process = process

    def _main(self) -> None:
        self.logger = self.logger.getChild(str(os.getpid()))
        self.run()

    def is_alive(self) -> bool:
        """Whether it runs.

        Raises:
            ValueError: If its block has ended: then there is no process any more.
        """
        return self._process is not None and bool(self._process.is_alive())

    @property
    def pid(self) -> int | None:
        """The process id; `None` before it starts."""
        if os.getpid() != self._owner:
            return os.getpid()
        return None if self._process is None else self._process.pid

    @property
    def exitcode(self) -> int | None:
        """The exit status; `None` while it runs."""
        return None if self._process is None else self._process.exitcode

    @property
    def ident(self) -> int | None:
        """The process id, likewise."""
        return self.pid

    @property
    def sentinel(self) -> int:
        """What `multiprocessing.connection.wait` takes: ready once the process has ended."""
        return int(self._process.sentinel)

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""
        self._process.join(timeout)

    def terminate(self) -> None:
        """Ends the process at once, with SIGTERM. What it was about to put out may be lost."""
        self._end("terminate")

    def kill(self) -> None:
        """The same with SIGKILL."""
        self._end("kill")

    def close(self) -> None:
        """Lets go of a process that has ended.

        Raises:
            ValueError: If it runs.
        """
        if self._process is not None:
            self._process.close()
        self._closed = True
        self.in_q.cancel_join_thread()  # nobody reads what waits in it

    def stop(self) -> None:
        """Tells it to stop, waits for `join_timeout` seconds, and then insists. In the process itself it only tells."""
        self._stop_event.set()
        if os.getpid() != self._owner:
            self._stopped_itself = True
        elif self._process is not None and not self._closed:
            self._wait_or_insist()

    def _wait_or_insist(self) -> None:
        self.join(self.join_timeout)
        if self.is_alive():
            _log.warning("the process %s did not end within %g seconds and is terminated", self.name, self.join_timeout)
            self._process.terminate()
            self.join()

    def _end(self, how: str) -> None:
        self._stop_event.set()
        if self._process is not None:
            getattr(self._process, how)()

    def __enter__(self) -> Self:
        """Starts the process."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it, and lets go of it."""
        self.stop()
        self.close()

    def __iter__(self) -> Iterator[Any]:
        """What comes out, as it comes, until the process raises `StopIteration`."""
        return self

    def __next__(self) -> Any:
        """What comes out next.

        Raises:
            StopIteration: If nothing will.
            MonitorError: If something else has ended the process, or one before it, which then said nothing.
            BaseException: Whatever was raised in the process.
        """
        return self._impatient_get(self.out_q)

    def _impatient_get(self, source: Any) -> Any:
        """The next package of a queue: what scripts of hermes call in a `get_package` of their own."""
        while True:
            ended, lost = self._has_ended(), self._lost()  # before the look, for what was put out last
            try:
                return opened(source.get(timeout=_LOOK_S))
            except queue.Empty:
                if lost is not None:
                    text = (
                        f"the process {lost.name} has ended with exit status {lost.exitcode} and has reported no error"
                    )
                    raise MonitorError(text) from None
            if ended:
                raise StopIteration

    def _has_ended(self) -> bool:
        """Whether nothing will come any more: in the script whether the process is over, in itself whether to stop."""
        if os.getpid() != self._owner:
            return self.stopped
        return self._process is not None and (self._closed or not self.is_alive())

    def _lost(self) -> PipelineProcess | None:
        """The process that something else has ended, of this one and those before it; known in the script alone."""
        process: PipelineProcess | None = self if os.getpid() == self._owner else None
        while process is not None:
            if not process._closed and process._has_ended() and process.exitcode != 0 and not process.stopped:
                return process
            process = process._upstream
        return None

    def __getstate__(self) -> dict[str, Any]:
        """What travels to a process that is started anew: not the processes before it."""
        return {**self.__dict__, "_upstream": None}

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
            after._upstream = before

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

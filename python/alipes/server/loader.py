"""A pool of loader threads: several models load at once, the jobs of one model one after the other.

Unloads have threads of their own: where every loader thread waits for an engine, what serves can still be taken away.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from alipes.server.log import log

Job = Callable[[], object]


@dataclass(slots=True)
class _Group:
    """Threads for one kind of job.

    Attributes:
        name: What their names begin with.
        threads: Those that were started; they stay.
        idle: How many of them wait for a job.
        ready: Jobs that may run, each with its key.
    """

    name: str
    threads: list[threading.Thread] = field(default_factory=list)
    idle: int = 0
    ready: deque[tuple[str, Job]] = field(default_factory=deque)


class LoaderPool:
    """Runs jobs on at most ``threads`` threads of each kind; jobs with the same key keep their order, never overlap."""

    def __init__(self, threads: int) -> None:
        """Starts nothing: a thread starts when a job finds none idle, and stays."""
        self._limit = max(1, threads)
        self._stopping = False
        self._loads = _Group("alipes-loader")
        self._unloads = _Group("alipes-unloader")
        # Keys with a job that runs or is ready -> their later jobs, each with its group.
        self._behind: dict[str, deque[tuple[_Group, Job]]] = {}
        self._changed = threading.Condition()

    def submit(self, key: str, job: Job, *, unloads: bool = False) -> bool:
        """Queues a job; false once the pool is stopping, and then the job never runs.

        Args:
            key: Jobs of the same key run in the order of their submission.
            job: The job.
            unloads: Whether it takes a model away, for which there are threads of their own.
        """
        group = self._unloads if unloads else self._loads
        with self._changed:
            if self._stopping:
                return False
            if key in self._behind:
                self._behind[key].append((group, job))
            else:
                self._behind[key] = deque()
                self._make_ready(group, key, job)
            return True

    def stop(self, timeout_s: float) -> bool:
        """Drops what has not begun and waits for what has; true if every thread ended in time."""
        groups = (self._loads, self._unloads)
        with self._changed:
            self._stopping = True
            self._behind.clear()
            for group in groups:
                group.ready.clear()
            self._changed.notify_all()
            threads = [thread for group in groups for thread in group.threads]
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _make_ready(self, group: _Group, key: str, job: Job) -> None:
        group.ready.append((key, job))
        if group.idle < len(group.ready) and len(group.threads) < self._limit:
            name = f"{group.name}-{len(group.threads)}"
            # Daemon: a load that hangs inside an engine must not outlive the exit time-out.
            thread = threading.Thread(target=self._work, args=(group,), name=name, daemon=True)
            group.threads.append(thread)
            thread.start()
        self._changed.notify_all()

    def _work(self, group: _Group) -> None:
        while (item := self._take(group)) is not None:
            key, job = item
            try:
                job()
            except Exception:  # a job reports its own failures; one that does not must not end the thread
                log.exception("a loader job of model '%s' failed", key)
            finally:
                self._finish(key)

    def _take(self, group: _Group) -> tuple[str, Job] | None:
        with self._changed:
            group.idle += 1
            while not group.ready and not self._stopping:
                self._changed.wait()
            group.idle -= 1
            return None if self._stopping else group.ready.popleft()

    def _finish(self, key: str) -> None:
        with self._changed:
            behind = self._behind.get(key)
            if behind:
                group, job = behind.popleft()
                self._make_ready(group, key, job)
            else:
                self._behind.pop(key, None)

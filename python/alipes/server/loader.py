"""A pool of loader threads: several models load at once, the jobs of one model one after the other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from alipes.server.log import log

Job = Callable[[], object]


class LoaderPool:
    """Runs jobs on at most ``threads`` threads; jobs with the same key keep their order and never overlap."""

    def __init__(self, threads: int) -> None:
        """Starts nothing: a thread starts when a job finds none idle, and stays."""
        self._limit = max(1, threads)
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._stopping = False
        self._ready: deque[tuple[str, Job]] = deque()
        # Keys with a job that runs or stands in `_ready` -> their later jobs.
        self._behind: dict[str, deque[Job]] = {}
        self._changed = threading.Condition()

    def submit(self, key: str, job: Job) -> bool:
        """Queues a job; false once the pool is stopping, and then the job never runs."""
        with self._changed:
            if self._stopping:
                return False
            if key in self._behind:
                self._behind[key].append(job)
                return True
            self._behind[key] = deque()
            self._ready.append((key, job))
            self._start_thread_if_needed()
            self._changed.notify()
            return True

    def stop(self, timeout_s: float) -> bool:
        """Drops what has not begun and waits for what has; true if every thread ended in time."""
        with self._changed:
            self._stopping = True
            self._ready.clear()
            self._behind.clear()
            self._changed.notify_all()
            threads = self._threads[:]
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _start_thread_if_needed(self) -> None:
        if self._idle >= len(self._ready) or len(self._threads) >= self._limit:
            return
        # Daemon: a load that hangs inside an engine must not outlive the exit time-out.
        thread = threading.Thread(target=self._work, name=f"alipes-loader-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (item := self._take()) is not None:
            key, job = item
            try:
                job()
            except Exception:  # a job reports its own failures; one that does not must not end the thread
                log.exception("a loader job of model '%s' failed", key)
            finally:
                self._finish(key)

    def _take(self) -> tuple[str, Job] | None:
        with self._changed:
            self._idle += 1
            while not self._ready and not self._stopping:
                self._changed.wait()
            self._idle -= 1
            return None if self._stopping else self._ready.popleft()

    def _finish(self, key: str) -> None:
        with self._changed:
            behind = self._behind.get(key)
            if behind:
                self._ready.append((key, behind.popleft()))
                self._changed.notify()
            else:
                self._behind.pop(key, None)

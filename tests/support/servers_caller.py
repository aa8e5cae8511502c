"""A client of several servers that calls until it is stopped, as a process of its own.

It is of the network that the test is in when it starts, with every thread that it has.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
from alipes.client import Client

_CALLERS: Final = 4
# Between two calls of a caller: the machine is the servers' too.
_PAUSE_S: Final = 0.01


class ServersCaller:
    """Asks the model `times` of all servers for as long as the context lasts.

    A context that ends well asserts that no call failed.
    """

    def __init__(self, addresses: list[str], hosts: Path | None = None, factors: Collection[int] = (2,)) -> None:
        """Starts the process.

        Args:
            addresses: As `Client` takes them.
            hosts: A file that stands for `/etc/hosts` in it.
            factors: By which one of them the model multiplies.
        """
        words = [sys.executable, "-m", "support.servers_caller", json.dumps(list(factors)), *addresses]
        if hosts is not None:
            shown = 'mount --bind "$0" /etc/hosts && exec "$@"'
            words = ["unshare", "--mount", "sh", "-c", shown, str(hosts), *words]
        self._process = subprocess.Popen(
            words, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        try:
            self.answers(more=_CALLERS)
        except AssertionError:
            self._process.communicate()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.answers(more=10 * _CALLERS)
        finally:
            self._process.communicate()

    def answers(self, more: int) -> int:
        """How many calls were answered, once there are so many more than now.

        Raises:
            AssertionError: If one failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(more, file=self._process.stdin, flush=True)
        answered, failures = json.loads(self._process.stdout.readline())
        assert not failures, f"{len(failures)} calls beside {answered} failed, the first ones: {failures[:3]}"
        return int(answered)


class _Work:
    """The work of the process."""

    def __init__(self, factors: Collection[int], addresses: list[str]) -> None:
        self._right = [[[factor, 2 * factor]] for factor in factors]
        self._client = Client(addresses)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._began_s = time.monotonic()
        self._answered = 0
        self._failures: list[str] = []

    def run(self) -> None:
        """Calls until its input ends; prints what became of the calls for each line of it."""
        callers = [threading.Thread(target=self._call) for _ in range(_CALLERS)]
        for caller in callers:
            caller.start()
        for line in sys.stdin:
            with self._changed:
                enough = self._answered + int(line)
                self._changed.wait_for(lambda enough=enough: self._answered >= enough or self._failures)
                print(json.dumps([self._answered, self._failures]), flush=True)
        self._stop.set()
        for caller in callers:
            caller.join()
        self._client.close()

    def _call(self) -> None:
        rows = np.array([[1, 2]], np.float32)
        while not self._stop.wait(_PAUSE_S):
            failure = ""
            try:
                answer = self._client.infer("times", rows).tolist()
                if answer not in self._right:
                    failure = str(answer)
            except Exception as error:
                failure = f"{type(error).__name__} after {time.monotonic() - self._began_s:.1f} s: {error}"
            with self._changed:
                self._answered += not failure
                self._failures += [failure] if failure else []
                self._changed.notify_all()


if __name__ == "__main__":
    _Work(json.loads(sys.argv[1]), sys.argv[2:]).run()

"""The servers of a run that its engine starts, beside the clients: on the nodes of a cluster."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

from alipes.batch.executors.server_tasks import ServerTasks
from alipes.batch.launch import LaunchFolder, ServerReport
from alipes.errors import AlipesError, BatchError
from alipes.progress import Task

__all__ = ["EngineServers"]

_LOOK_S: Final = 0.25
_ENDED_S: Final = 3.0
"""How often an engine is asked which servers it has lost."""
_SIGN_S: Final = 5.0
_MOST_RESTARTS: Final = 3
"""How often, for each server, the engine is asked for it again."""


class EngineServers:
    """Servers whose addresses stand in a folder, where they announce themselves."""

    def __init__(self, launch: LaunchFolder, tasks: ServerTasks, count: int) -> None:
        """Starts nothing yet."""
        self._launch, self._tasks, self._count = launch, tasks, count
        self._restarts = 0
        self._looked_s = 0.0
        self._over = threading.Event()
        self._signs = threading.Thread(target=self._sign, name="alipes-batch-signs", daemon=True)
        self.addresses: list[str] = []

    def start(self, line: Task) -> None:
        """Has the engine start them, and waits until all are ready.

        Args:
            line: Shows how many are.

        Raises:
            BatchError: If the engine refuses, or a server cannot start.
        """
        self._signs.start()
        self._tasks.begin(range(self._count))
        while len(found := self._reports()) < self._count:
            line.step(f"waits for servers: {len(found)} of {self._count}")
            self._restart_ended()
            time.sleep(_LOOK_S)
        self.addresses = self._announced(found)

    def look(self) -> bool:
        """Has lost servers started again; whether an address has changed.

        Raises:
            BatchError: If one cannot go on.
        """
        self._restart_ended()
        before, found = self.addresses, self._reports()
        if len(found) == self._count:
            self.addresses = self._announced(found)
        return self.addresses != before

    def stop(self) -> None:
        """Ends them."""
        self._over.set()
        if self._signs.is_alive():
            self._signs.join()
        self._launch.end()
        with suppress(AlipesError):
            self._tasks.stop()

    def _reports(self) -> dict[int, ServerReport]:
        """What servers say that are ready, or were.

        Raises:
            BatchError: If one cannot go on.
        """
        reports = {report.number: report for report in self._launch.reports()}
        for report in reports.values():
            if report.reason:
                raise BatchError(f"server {report.number} on {report.host} cannot go on: {report.reason}")
        return {number: report for number, report in reports.items() if report.address}

    def _announced(self, reports: dict[int, ServerReport]) -> list[str]:
        return [reports[number].address for number in range(self._count)]

    def _restart_ended(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s < _ENDED_S:
            return
        self._looked_s = now_s
        ended = self._tasks.ended()
        if not ended:
            return
        self._reports()  # one of them may say why
        self._restarts += len(ended)
        if self._restarts > _MOST_RESTARTS * self._count:
            raise BatchError(f"servers are lost again and again; what they wrote is in {self._launch.path}")
        self._tasks.begin(ended)

    def _sign(self) -> None:
        """Says again and again that the run goes on, also while it plans."""
        while not self._over.wait(_SIGN_S):
            self._launch.sign()

"""The clients of a run as tasks of Ray, on a cluster that is there or on this machine."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Final

from alipes.batch.executors.base import ExecutorOptions, Watch, worker_command
from alipes.batch.executors.remote_client import Outcomes, run_client
from alipes.batch.folder import RunFolder, Start
from alipes.errors import BatchError, ConfigError
from alipes.ray.library import ray_library

__all__ = ["RETRIES", "RayConnection", "RayExecutor"]

_LOOK_S: Final = 0.5
_REACHED_S: Final = 10.0
RETRIES: Final = 3
"""How often a client or a server is started again whose node goes away."""
_OPTIONS: Final = ("address", "num_cpus")


class RayExecutor:
    """Submits a task for each client, and waits for them."""

    def __init__(self, options: ExecutorOptions, watch: Watch) -> None:
        """Looks for Ray.

        Args:
            options: `address` of a cluster, `auto` for that of this machine; without, one is started here. `num_cpus`
                is what a client reserves, 1 by default.
            watch: Called again and again while clients run.

        Raises:
            ConfigError: If there is another option.
            Unsupported: If Ray is not installed.
        """
        self._connection = RayConnection(options)
        self._library = self._connection.library
        self._watch = watch
        self._outcomes = Outcomes()
        self.failures = self._outcomes.failures

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end.

        Raises:
            BatchError: If the cluster cannot be reached.
        """
        self._connection.open(len(shards))
        try:
            self._run(folder, start, shards)
        finally:
            self._connection.close()

    def _run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        task = self._library.remote(num_cpus=self._connection.cpus, max_retries=RETRIES)(run_client)
        tasks = {task.remote(worker_command(folder, shard, start)): shard for shard in shards}
        pending = list(tasks)
        try:
            while pending:
                self._watch()
                _, pending = self._library.wait(pending, num_returns=len(pending), timeout=_LOOK_S)
        except BaseException:
            for one in pending:
                self._library.cancel(one, force=True)
            raise
        self._outcomes.begin()
        for one, shard in tasks.items():
            try:
                code, text = self._library.get(one)
            except self._library.exceptions.RayError as error:
                self.failures.append(f"Ray lost the client of shard {shard}: {error}".splitlines()[0])
                continue
            self._outcomes.add(shard, code, text)


class RayConnection:
    """A cluster of Ray for as long as somebody uses it, unless the script uses one already."""

    def __init__(self, options: ExecutorOptions) -> None:
        """Looks for Ray.

        Raises:
            ConfigError: If there is another option than an executor takes.
            Unsupported: If Ray is not installed.
        """
        if wrong := [name for name in options if name not in _OPTIONS]:
            raise ConfigError(f"executor 'ray' takes {' and '.join(_OPTIONS)}, not {wrong[0]}", key="executor_options")
        self.library: Any = ray_library()
        self._address = options.get("address")
        self.cpus = float(options.get("num_cpus", 1))
        self._is_ours = False

    def open(self, clients: int, more_cpus: float = 0) -> None:
        """Connects, where the process is not connected.

        Args:
            clients: Clients, for which a cluster that is started here has place at the same time.
            more_cpus: What it has beside them.

        Raises:
            BatchError: If the cluster cannot be reached.
        """
        if self.library.is_initialized():
            return
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            if self._address is None:
                # As many at a time as there are clients, whatever cores this machine has: they wait for servers.
                cpus = max(1, round(clients * self.cpus + more_cpus))
                self.library.init(num_cpus=cpus, include_dashboard=False, **quiet)
            else:
                _check_reached(self._address)
                self.library.init(address=self._address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise BatchError(f"no cluster of Ray answers at {self._address or 'this machine'}: {error}") from error
        self._is_ours = True

    def close(self) -> None:
        """Leaves it, or ends the one that was started here."""
        if self._is_ours:
            self.library.shutdown()
            self._is_ours = False


def _check_reached(address: str) -> None:
    """Looks whether anybody listens: Ray itself tries for a minute and more, and ends the process then.

    Raises:
        OSError: If nobody does.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_S).close()

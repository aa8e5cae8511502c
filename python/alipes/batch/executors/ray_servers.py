"""The servers of a run as tasks of Ray, on as many nodes as there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from alipes.batch.executors.ray import RETRIES, RayConnection
from alipes.batch.executors.remote_server import run_server
from alipes.batch.executors.server_tasks import STOP_S, server_command
from alipes.batch.launch import LaunchFolder
from alipes.errors import ConfigError

__all__ = ["RayServers"]

_OPTIONS: Final = ("num-cpus", "num-gpus")


class RayServers:
    """A task for each server."""

    def __init__(
        self, options: Mapping[str, Any], more: Mapping[str, Any], launch: LaunchFolder, servers: int, clients: int
    ) -> None:
        """Connects to the cluster, or starts one here.

        Args:
            options: Those of clients.
            more: Those for servers alone: `num-cpus`, 1 by default, and `num-gpus` of each.
            launch: Where the servers announce themselves.
            servers: How many there will be.
            clients: Clients of each.

        Raises:
            ConfigError: If an option is wrong.
            BatchError: If the cluster cannot be reached.
        """
        if wrong := [name for name in more if name.replace("_", "-") not in _OPTIONS]:
            raise ConfigError(
                f"servers on Ray take server-num-cpus and server-num-gpus, not server-{wrong[0]}",
                key="executor_options",
            )
        amounts = {name.replace("-", "_"): float(value) for name, value in more.items()}
        self._amounts = {"num_cpus": 1.0} | amounts
        self._launch = launch
        self._connection = RayConnection(options)
        self._connection.open(servers * clients, servers * self._amounts["num_cpus"])
        self._library = self._connection.library
        self._tasks: dict[int, Any] = {}

    def begin(self, numbers: Sequence[int]) -> None:
        """Submits a task for each."""
        task = self._library.remote(max_retries=RETRIES, scheduling_strategy="SPREAD", **self._amounts)(_serve)
        for number in numbers:
            self._tasks[number] = task.remote(server_command(self._launch, number))

    def ended(self) -> list[int]:
        """The numbers of those that have ended."""
        tasks = list(self._tasks.values())
        done, _ = self._library.wait(tasks, num_returns=len(tasks), timeout=0)
        return [number for number, task in self._tasks.items() if task in done]

    def stop(self) -> None:
        """Waits until they have ended."""
        tasks = list(self._tasks.values())
        if tasks:
            _, pending = self._library.wait(tasks, num_returns=len(tasks), timeout=STOP_S)
            for task in pending:
                self._library.cancel(task, force=True)
        self._connection.close()


def _serve(command: list[str]) -> tuple[int, str]:
    """A task."""
    return run_server(command, import_module("ray").util.get_node_ip_address())

"""The servers of a run as tasks of Dask: on one worker after the other, beside what these compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from alipes.batch.executors.dask import RETRIES, open_client
from alipes.batch.executors.remote_server import run_server
from alipes.batch.executors.server_tasks import STOP_S, server_command
from alipes.batch.launch import LaunchFolder
from alipes.errors import ConfigError
from alipes.serve.node import host_of

__all__ = ["DaskServers"]


class DaskServers:
    """A task for each server."""

    def __init__(self, options: Mapping[str, Any], more: Mapping[str, Any], launch: LaunchFolder) -> None:
        """Connects to the scheduler.

        Args:
            options: Those of clients: `address` or `client`.
            more: Those for servers alone: `resources` of a worker, as in `GPU=1`.
            launch: Where the servers announce themselves.

        Raises:
            ConfigError: If an option is wrong.
            BatchError: If the scheduler cannot be reached.
        """
        self._resources = _resources(more)
        self._launch = launch
        self._client, self._is_ours = open_client(options)
        self._tasks: dict[int, Any] = {}

    def begin(self, numbers: Sequence[int]) -> None:
        """Submits a task for each, to one worker after the other; to any once that is gone."""
        workers = sorted(self._client.nthreads())
        for number in numbers:
            place = {"workers": workers[number % len(workers)]} if workers and not self._resources else {}
            self._tasks[number] = self._client.submit(
                _serve,
                server_command(self._launch, number),
                pure=False,
                retries=RETRIES,
                resources=self._resources or None,
                allow_other_workers=bool(place),
                **place,
            )

    def ended(self) -> list[int]:
        """The numbers of those that have ended."""
        return [number for number, task in self._tasks.items() if task.done()]

    def stop(self) -> None:
        """Waits until they have ended."""
        library = import_module("distributed")
        with self._client.as_current(), suppress(TimeoutError):
            library.wait(list(self._tasks.values()), timeout=STOP_S)
        self._client.cancel(list(self._tasks.values()))
        if self._is_ours:
            self._client.close()


def _resources(options: Mapping[str, Any]) -> dict[str, float]:
    if wrong := [name for name in options if name != "resources"]:
        raise ConfigError(
            f"servers on Dask take server-resources=NAME=NUMBER, not server-{wrong[0]}", key="executor_options"
        )
    value = options.get("resources", {})
    if not isinstance(value, str):
        return dict(value)
    name, equals, number = value.partition("=")
    try:
        return {name: float(number if equals else 1)}
    except ValueError as error:
        raise ConfigError(
            f"server-resources: expected NAME=NUMBER, as in GPU=1, got {value!r}", key="executor_options"
        ) from error


def _serve(command: list[str]) -> tuple[int, str]:
    """A task: it leaves its thread of the worker to others, since it only waits."""
    library = import_module("distributed")
    host = host_of(library.get_worker().address)
    library.secede()
    return run_server(command, host)

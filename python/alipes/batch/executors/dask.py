"""The clients of a run as tasks of a cluster of Dask that is there already, such as one of dask-jobqueue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from alipes.batch.executors.base import ExecutorOptions, Watch, worker_command
from alipes.batch.executors.remote_client import Outcomes, run_client
from alipes.batch.folder import RunFolder, Start
from alipes.dask.library import dask_library
from alipes.errors import BatchError, ConfigError

__all__ = ["RETRIES", "DaskExecutor", "open_client"]

_LOOK_S: Final = 0.5
RETRIES: Final = 3
"""How often a client or a server is started again whose worker of Dask goes away."""


class DaskExecutor:
    """Submits a task for each client, and waits for them."""

    def __init__(self, options: ExecutorOptions, watch: Watch) -> None:
        """Takes a cluster.

        Args:
            options: `address` of a scheduler, or a `client` of `distributed`.
            watch: Called again and again while clients run.

        Raises:
            ConfigError: If there is neither.
            Unsupported: If Dask is not installed.
        """
        _check_options(options)
        self._library: Any = dask_library()
        self._options, self._watch = options, watch
        self._outcomes = Outcomes()
        self.failures = self._outcomes.failures

    def run(self, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        """Runs the clients of some shards to their end.

        Raises:
            BatchError: If the scheduler cannot be reached.
        """
        client, is_ours = open_client(self._options)
        try:
            self._run(client, folder, start, shards)
        finally:
            if is_ours:
                client.close()

    def _run(self, client: Any, folder: RunFolder, start: Start, shards: Sequence[int]) -> None:
        futures = [
            client.submit(run_client, worker_command(folder, shard, start), pure=False, retries=RETRIES)
            for shard in shards
        ]
        try:
            while not all(future.done() for future in futures):
                self._watch()
                with client.as_current(), suppress(TimeoutError):
                    self._library.wait(futures, timeout=_LOOK_S)
        except BaseException:
            client.cancel(futures)
            raise
        self._outcomes.begin()
        for shard, future in zip(shards, futures, strict=True):
            if future.status != "finished":
                self.failures.append(f"Dask lost the client of shard {shard}: {future.exception()}")
                continue
            self._outcomes.add(shard, *future.result())


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuses options that lead to no cluster.

    Raises:
        ConfigError: If there is not one of the two.
    """
    if len(options) != 1 or not {"address", "client"} & options.keys():
        raise ConfigError(
            "executor 'dask' takes the address of a scheduler, as in address=tcp://HOST:8786", key="executor_options"
        )


def open_client(options: Mapping[str, Any]) -> tuple[Any, bool]:
    """The client of a cluster, and whether it is to be closed.

    Raises:
        ConfigError: If an option is wrong.
        Unsupported: If Dask is not installed.
        BatchError: If the scheduler cannot be reached.
    """
    _check_options(options)
    if (client := options.get("client")) is not None:
        return client, False
    address = options["address"]
    try:
        return dask_library().Client(address, timeout=30, set_as_default=False), True
    except (OSError, ValueError) as error:
        raise BatchError(f"no scheduler of Dask answers at {address}: {error}") from error

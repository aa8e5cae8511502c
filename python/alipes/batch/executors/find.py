"""The engine of a name."""

from __future__ import annotations

from typing import Final

from alipes.batch.executors.base import Executor, ExecutorOptions, Watch
from alipes.batch.executors.local import LocalExecutor
from alipes.batch.executors.server_tasks import ServerTasks, client_options, server_options
from alipes.batch.launch import LaunchFolder
from alipes.errors import ConfigError

__all__ = ["EXECUTORS", "STARTS_SERVERS", "open_executor", "open_server_tasks"]

EXECUTORS: Final = ("local", "slurm", "dask", "ray", "kubernetes", "htcondor")
STARTS_SERVERS: Final = ("local", "slurm", "dask", "ray")
"""Those that start servers beside the clients."""


def open_executor(name: str, options: ExecutorOptions, watch: Watch) -> Executor:
    """An engine that is ready.

    Args:
        name: One of `EXECUTORS`.
        options: What it needs to know.
        watch: Called again and again while clients run.

    Raises:
        ConfigError: If there is none of that name, or an option is wrong.
        Unsupported: If its library is not installed.
    """
    if name == "slurm":
        from alipes.batch.executors.slurm import SlurmExecutor

        return SlurmExecutor(options, watch)
    if name == "dask":
        from alipes.batch.executors.dask import DaskExecutor

        return DaskExecutor(options, watch)
    if name == "ray":
        from alipes.batch.executors.ray import RayExecutor

        return RayExecutor(options, watch)
    if name == "kubernetes":
        from alipes.batch.executors.kubernetes import KubernetesExecutor

        return KubernetesExecutor(options, watch)
    if name == "htcondor":
        from alipes.batch.executors.htcondor import HtcondorExecutor

        return HtcondorExecutor(options, watch)
    if options:
        raise ConfigError(f"executor '{name}' takes no options, not {', '.join(options)}", key="executor_options")
    return LocalExecutor(watch)


def open_server_tasks(
    name: str, options: ExecutorOptions, launch: LaunchFolder, servers: int, clients: int
) -> ServerTasks:
    """What has an engine run the servers of a run.

    Args:
        name: One of `EXECUTORS`, but `local`.
        options: What it needs to know; those that begin with `server-` are for servers alone.
        launch: Where the servers announce themselves.
        servers: How many there will be.
        clients: Clients of each.

    Raises:
        ConfigError: If an option is wrong.
        Unsupported: If its library is not installed.
        BatchError: If its cluster cannot be reached.
    """
    ours, more = client_options(options), server_options(options)
    if name == "slurm":
        from alipes.batch.executors.slurm_servers import SlurmServers

        return SlurmServers(ours | more, launch)
    if name == "dask":
        from alipes.batch.executors.dask_servers import DaskServers

        return DaskServers(ours, more, launch)
    from alipes.batch.executors.ray_servers import RayServers

    return RayServers(ours, more, launch, servers, clients)

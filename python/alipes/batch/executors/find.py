"""The engine of a name."""

from __future__ import annotations

from typing import Final

from alipes.batch.executors.base import Executor, ExecutorOptions, Watch
from alipes.batch.executors.local import LocalExecutor
from alipes.errors import ConfigError

__all__ = ["EXECUTORS", "open_executor"]

EXECUTORS: Final = ("local", "slurm", "dask", "ray")


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
    if options:
        raise ConfigError(f"executor '{name}' takes no options, not {', '.join(options)}", key="executor_options")
    return LocalExecutor(watch)

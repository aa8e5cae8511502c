"""A server of a run as a task of an engine that runs functions: in a process of its own."""

from __future__ import annotations

from alipes.batch.executors.remote_client import run_client

__all__ = ["run_server"]


def run_server(command: list[str], host: str) -> tuple[int, str]:
    """Runs a server until its run is over.

    Args:
        command: Its command line.
        host: The address of this machine.

    Returns:
        Its exit code, and what it wrote.
    """
    return run_client([*command, "--host", host])

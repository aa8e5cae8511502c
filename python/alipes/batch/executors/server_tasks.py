"""What every engine does for servers of a run: run them beside its clients."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from alipes.batch.launch import LaunchFolder

__all__ = ["STOP_S", "ServerTasks", "client_options", "server_command", "server_options"]

STOP_S: Final = 30.0
"""How long servers may take to end."""
_PREFIX: Final = "server-"


class ServerTasks(Protocol):
    """Servers as tasks of an engine, each with a number."""

    def begin(self, numbers: Sequence[int]) -> None:
        """Has the engine start servers.

        Raises:
            BatchError: If it refuses.
        """

    def ended(self) -> list[int]:
        """The numbers of those that neither run nor wait for a place."""

    def stop(self) -> None:
        """Ends all; the folder says already that they are no longer used."""


def server_command(launch: LaunchFolder, number: int | str) -> list[str]:
    """The command line of a server, the same under every engine."""
    return [sys.executable, "-m", "alipes.batch.server_process", str(launch.path), str(number)]


def client_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an engine without those for servers alone."""
    return {name: value for name, value in options.items() if not _is_servers(name)}


def server_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those whose names begin with `server-`, without that word."""
    return {name[len(_PREFIX) :]: value for name, value in options.items() if _is_servers(name)}


def _is_servers(name: str) -> bool:
    return name.replace("_", "-").startswith(_PREFIX)

"""The servers of a run: those that have addresses, or some that are started for it, here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from alipes.batch.engine_servers import EngineServers
from alipes.batch.executors.base import ExecutorOptions
from alipes.batch.executors.find import open_server_tasks
from alipes.batch.folder import RunFolder
from alipes.batch.launch import LaunchFolder
from alipes.batch.sender import with_protocol
from alipes.client.servers.addresses import read_addresses
from alipes.errors import BatchError, ConfigError, ServeError
from alipes.progress import Task

__all__ = ["Engine", "RunServers", "run_servers"]


class RunServers(Protocol):
    """The servers of a run."""

    @property
    def addresses(self) -> list[str]:
        """Where they are now."""

    def look(self) -> bool:
        """Starts again those that have ended; whether an address has changed by that."""


class RemoteServers:
    """Servers that run anyway."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """Takes their addresses."""
        self.addresses = [with_protocol(address) for address in addresses]

    def look(self) -> bool:
        """Nothing: they are others' to start."""
        return False


class LocalServers:
    """Servers of this machine, at free ports."""

    def __init__(self, repository: str, count: int, options: dict[str, Any], stack: ExitStack) -> None:
        """Starts them.

        Raises:
            ServeError: If one cannot start.
        """
        from alipes.serve.node import NodeServer  # for runs that start servers

        self._servers = []
        for _ in range(count):
            server = NodeServer(repository, "127.0.0.1", options)
            stack.callback(server.stop)
            self._servers.append(server)
        for server in self._servers:
            server.wait_until_ready()

    @property
    def addresses(self) -> list[str]:
        """Of gRPC."""
        return [f"grpc://{server.grpc}" for server in self._servers]

    def look(self) -> bool:
        """Starts again those that have ended.

        Raises:
            BatchError: If that happens again and again.
        """
        try:
            return any([server.look() for server in self._servers])  # noqa: C419 - all are looked at
        except ServeError as error:
            raise BatchError(str(error)) from error


@dataclass(frozen=True)
class Engine:
    """What starts the servers of a run elsewhere.

    Attributes:
        name: The executor.
        options: What it needs to know.
        folder: The folder of the run.
        clients: Clients of each server.
        line: Shows what is waited for.
    """

    name: str
    options: ExecutorOptions
    folder: RunFolder
    clients: int
    line: Task


@contextmanager
def run_servers(
    url: str | Sequence[str] | None,
    servers: int | None,
    repository: str | None,
    options: dict[str, Any] | None = None,
    engine: Engine | None = None,
) -> Iterator[RunServers]:
    """The servers for as long as the block runs.

    Args:
        url: Addresses of servers.
        servers: How many are started.
        repository: The models that these serve.
        options: Further arguments of `alipes.Server`.
        engine: What starts them; this process by default.

    Raises:
        ConfigError: If neither is named, or both.
    """
    if (url is None) == (repository is None):
        raise ConfigError(
            "name the servers by their addresses, or a repository for servers that are started: one of the two",
            key="url",
        )
    if url is not None:
        if servers is not None and servers != len(read_addresses(url)):
            raise ConfigError(
                f"there are {len(read_addresses(url))} addresses for {servers} servers: leave the number out",
                key="servers",
            )
        yield RemoteServers(read_addresses(url))
        return
    if servers is not None and servers < 1:
        raise ConfigError(f"expected at least one server, got {servers}", key="servers")
    with ExitStack() as stack:
        if engine is not None and engine.name != "local":
            yield _engine_servers(engine, str(repository), servers or 1, options or {}, stack)
            return
        yield LocalServers(str(repository), servers or 1, options or {}, stack)


def _engine_servers(
    engine: Engine, repository: str, count: int, options: dict[str, Any], stack: ExitStack
) -> EngineServers:
    launch = LaunchFolder.make(engine.folder, repository, options)
    tasks = open_server_tasks(engine.name, engine.options, launch, count, engine.clients)
    up = EngineServers(launch, tasks, count)
    stack.callback(up.stop)
    up.start(engine.line)
    return up

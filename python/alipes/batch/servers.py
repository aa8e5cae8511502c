"""The servers of a run: those that have addresses, or some that are started on this machine for as long as it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

from alipes.batch.sender import with_protocol
from alipes.client.servers.addresses import read_addresses
from alipes.errors import BatchError, ConfigError

__all__ = ["RunServers", "run_servers"]

_MOST_RESTARTS: Final = 3
"""How often servers of a run are started again that ended."""


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
        self._repository, self._options, self._stack = repository, options, stack
        self._restarts = 0
        self._servers = [self._started() for _ in range(count)]
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
        ended = [number for number, server in enumerate(self._servers) if server.status() == "ended"]
        for number in ended:
            self._restarts += 1
            if self._restarts > _MOST_RESTARTS:
                raise BatchError(f"servers end again and again; the last words of one: {self._servers[number].log}")
            self._servers[number] = self._started()
            self._servers[number].wait_until_ready(progress=False)
        return bool(ended)

    def _started(self) -> Any:
        from alipes.serve.server import Server

        server = Server(self._repository, port=0, host="127.0.0.1", wait=False, **self._options)
        self._stack.callback(server.stop)
        return server


@contextmanager
def run_servers(
    url: str | Sequence[str] | None, servers: int | None, repository: str | None, options: dict[str, Any] | None = None
) -> Iterator[RunServers]:
    """The servers for as long as the block runs.

    Args:
        url: Addresses of servers.
        servers: How many are started.
        repository: The models that these serve.
        options: Further arguments of `alipes.Server`.

    Raises:
        ConfigError: If neither is named, or both.
    """
    if (url is None) == (repository is None):
        raise ConfigError(
            "name the servers by their addresses, or a repository for servers of this machine: one of the two",
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
        yield LocalServers(str(repository), servers or 1, options or {}, stack)

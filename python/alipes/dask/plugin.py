"""`ServerPlugin`: a server beside each worker of a cluster, also beside those that come later."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from alipes.client import Client
from alipes.client.moving import MovingClient
from alipes.dask.library import dask_library
from alipes.errors import ConfigError, ServeError, Unsupported
from alipes.serve.node import NodeServer, host_of

if TYPE_CHECKING:

    class _Plugin:
        pass
else:
    try:
        _Plugin = dask_library().WorkerPlugin
    except Unsupported:  # who makes a plugin is told what to install
        _Plugin = object

__all__ = ["DEFAULT_NAME", "ServerPlugin", "local_client", "local_server"]

DEFAULT_NAME: Final = "alipes"
_RECONNECT_S: Final = 120.0


class ServerPlugin(_Plugin):
    """A plugin of workers.

        from alipes.dask import Infer, ServerPlugin

        client.register_plugin(ServerPlugin("/data/models"))
        answers = client.gather(client.map(Infer("digits"), parts))

    A server that ends is started again; one goes with its worker. `client.unregister_worker_plugin("alipes")` ends
    all.
    """

    def __init__(self, repository: str | os.PathLike[str], *, name: str = DEFAULT_NAME, **flags: Any) -> None:
        """Starts nothing yet.

        Args:
            repository: The models: a folder that is there for all workers, or the address of a bucket.
            name: Of the plugin; another one for other models beside these.
            flags: Flags of `alipes serve` with `_` for `-`, as `alipes.Server` takes them.

        Raises:
            Unsupported: If Dask is not installed.
        """
        dask_library()
        place = os.fspath(repository)
        self.name = name
        self.repository = place if "://" in place else os.path.abspath(place)  # noqa: PTH100
        self.flags = flags
        self.server: NodeServer | None = None
        self.failure: ServeError | None = None
        self.client: MovingClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What it is before it has a server."""
        return self.__dict__ | {"server": None, "failure": None, "client": None}

    async def setup(self, worker: Any) -> None:
        """Starts the server, while the worker goes on."""
        await asyncio.to_thread(self._start, host_of(worker.address))

    async def teardown(self, worker: Any) -> None:
        """Ends it."""
        if self.client is not None:
            self.client.close()
        if self.server is not None:
            await asyncio.to_thread(self.server.stop)

    def address(self) -> str:
        """Where the server answers now.

        Raises:
            ServeError: If it could not be started again.
        """
        if self.failure is not None or self.server is None:
            raise self.failure or ServeError(f"the server of plugin '{self.name}' does not run yet")
        return f"grpc://{self.server.grpc}"

    def _start(self, host: str) -> None:
        self.server = NodeServer(self.repository, host, self.flags)
        try:
            self.server.wait_until_ready()
        except BaseException:
            self.server.stop()
            raise
        self.client = MovingClient(self.address, _RECONNECT_S, {})
        self.server.watch(self._fail)

    def _fail(self, error: ServeError) -> None:
        self.failure = error


def local_server(name: str = DEFAULT_NAME) -> ServerPlugin:
    """The plugin of the worker that runs this task.

    Raises:
        ConfigError: If it has none, or this is no task.
    """
    try:
        worker = dask_library().get_worker()
    except ValueError as error:
        raise ConfigError("this is no task of Dask: only there is a server beside the worker", key="name") from error
    found: ServerPlugin | None = worker.plugins.get(name)
    if found is None:
        raise ConfigError(
            f"the worker has no plugin '{name}': call client.register_plugin(ServerPlugin(...)) first", key="name"
        )
    return found


def local_client(name: str = DEFAULT_NAME, **options: Any) -> Client:
    """In a task: a client of the server beside its worker.

    Args:
        name: Of the plugin.
        options: Further arguments of `alipes.Client`.

    Raises:
        ConfigError: If there is no such server, or this is no task.
    """
    return Client(local_server(name).address(), **options)

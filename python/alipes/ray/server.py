"""`Server`: a server on a cluster of Ray, for as long as its script uses it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from alipes.client import Client
from alipes.client.moving import MovingClient
from alipes.errors import AlipesError, ServeError
from alipes.ray.actor import ServerActor
from alipes.ray.library import ray_library

__all__ = ["Server"]

_STOP_S: Final = 30.0
_RECONNECT_S: Final = 120.0


class Server:
    """A server in an actor of Ray, with the resources that it needs. Tasks and other actors may have this object, too.

        import ray
        from alipes.ray import Server

        with Server("/data/models", num_cpus=2, num_gpus=1) as server:

            @ray.remote(num_cpus=0.1)
            def ask(rows):
                return server.infer("digits", rows)

            answers = ray.get([ask.remote(rows) for rows in parts])

    Where the server ends, it is started again in its actor; where the actor or its node is lost, Ray starts the actor
    again, elsewhere if need be. `infer` finds it there.
    """

    def __init__(
        self,
        repository: str | os.PathLike[str],
        *,
        num_cpus: float = 1,
        num_gpus: float = 0,
        max_restarts: int = -1,
        actor_options: Mapping[str, Any] | None = None,
        **flags: Any,
    ) -> None:
        """Starts the actor, and returns once all models can answer.

        Args:
            repository: The models: a folder that is there on the nodes, or the address of a bucket.
            num_cpus: Cores that it reserves.
            num_gpus: GPUs that it reserves; it sees these alone.
            max_restarts: How often Ray starts the actor again; -1 is always.
            actor_options: Further options of Ray's actors: `resources`, `name`, `scheduling_strategy`, `runtime_env`.
            flags: Flags of `alipes serve` with `_` for `-`, as `alipes.Server` takes them.

        Raises:
            ServeError: If it cannot start.
            Unsupported: If Ray is not installed.
        """
        ray = ray_library()
        place = os.fspath(repository)
        options = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "max_restarts": max_restarts,
            "max_task_retries": -1,
            **(actor_options or {}),
        }
        kind = ray.remote(ServerActor).options(**options)
        self._begin(kind.remote(place if "://" in place else os.path.abspath(place), flags))  # noqa: PTH100
        try:
            self.addresses()
        except BaseException:
            self.stop()
            raise

    def _begin(self, actor: Any) -> None:
        self.actor = actor
        self._client: MovingClient | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """The same server, for another process."""
        return _of, (self.actor,)

    def __enter__(self) -> Self:
        """The server, which runs already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()

    def addresses(self) -> dict[str, str]:
        """Where it answers now, by protocol: `http` and `grpc`. Another one after it was started again.

        Raises:
            ServeError: If it is lost for good.
        """
        ray = ray_library()
        try:
            found: dict[str, str] = ray.get(self.actor.addresses.remote())
        except ray.exceptions.RayError as error:
            raise _lost(error) from error
        return found

    @property
    def grpc_url(self) -> str:
        """The address for gRPC now."""
        return self.addresses()["grpc"]

    @property
    def url(self) -> str:
        """The address for HTTP now."""
        return self.addresses()["http"]

    def client(self, **options: Any) -> Client:
        """A client of where it is now."""
        return Client(self.grpc_url, **options)

    def infer(self, model: str, inputs: Any, **options: Any) -> Any:
        """Sends a request, as `alipes.Client.infer` does; again where the server was lost meanwhile.

        Raises:
            ServeError: If the server is lost for good.
            AlipesError: Whatever the server says.
        """
        if self._client is None:
            self._client = MovingClient(lambda: self.grpc_url, _RECONNECT_S, {})
        return self._client.infer(model, inputs, **options)

    def stop(self) -> None:
        """Ends it, after what it is doing. A second time does nothing."""
        ray = ray_library()
        if self._client is not None:
            self._client.close()
        with suppress(ray.exceptions.RayError, AlipesError):
            ray.get(self.actor.stop.remote(), timeout=_STOP_S)
        ray.kill(self.actor)


def _of(actor: Any) -> Server:
    server = object.__new__(Server)
    server._begin(actor)
    return server


def _lost(error: Exception) -> ServeError:
    cause = getattr(error, "cause", None)
    if isinstance(cause, ServeError):
        return cause
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return ServeError(f"the server on Ray is lost: {lines[-1].strip() if lines else type(error).__name__}")

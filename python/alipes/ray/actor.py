"""The actor that has a server: Ray starts it again elsewhere where its process or its node is lost."""

from __future__ import annotations

import os
import sys
from typing import Any

from alipes.errors import ServeError
from alipes.ray.library import ray_library
from alipes.serve.node import NodeServer

__all__ = ["ServerActor"]


class ServerActor:
    """A server of the node on which Ray places it."""

    def __init__(self, repository: str, flags: dict[str, Any]) -> None:
        """Starts the server, and returns once all models can answer.

        Raises:
            ServeError: If it cannot start.
        """
        self._server = NodeServer(repository, ray_library().util.get_node_ip_address(), flags)
        self._server.wait_until_ready()
        self._server.watch(_leave)

    def addresses(self) -> dict[str, str]:
        """Where it answers now, by protocol."""
        return {"http": f"http://{self._server.http}", "grpc": f"grpc://{self._server.grpc}"}

    def stop(self) -> None:
        """Ends the server, after what it is doing."""
        self._server.stop()


def _leave(error: ServeError) -> None:
    """Ends the actor, which Ray starts again as often as it may."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    os._exit(1)

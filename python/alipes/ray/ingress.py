"""Servers behind Ray Serve: each of its replicas has one, and forwards what comes to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from alipes.errors import ServeError
from alipes.ray.library import ray_library
from alipes.serve.node import NodeServer

__all__ = ["ingress"]

_EXTRA: Final = "ray[serve]"
_HOP: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that are for one connection. Source: RFC 9110, 7.6.1."""


def ingress(
    repository: str | os.PathLike[str], *, deployment_options: Mapping[str, Any] | None = None, **flags: Any
) -> Any:
    """An application of Ray Serve whose replicas each have a server of their own.

        from ray import serve
        from alipes.ray import ingress

        serve.run(ingress("/data/models", deployment_options={"num_replicas": 2}))

    Everything that alipes answers over HTTP is answered at Ray Serve's port, 8000 by default. A replica whose server
    cannot be started again fails its health check, and Ray Serve replaces it.

    Args:
        repository: The models: a folder that is there on the nodes, or the address of a bucket.
        deployment_options: Options of Ray Serve's deployments: `num_replicas`, `autoscaling_config`,
            `ray_actor_options`.
        flags: Flags of `alipes serve` with `_` for `-`, as `alipes.Server` takes them.

    Raises:
        Unsupported: If Ray Serve is not installed.
    """
    serve = ray_library("ray.serve", _EXTRA)
    place = os.fspath(repository)
    options = {"name": "alipes"} | dict(deployment_options or {})
    deployment = serve.deployment(ServerReplica, **options)
    return deployment.bind(place if "://" in place else os.path.abspath(place), flags)  # noqa: PTH100


class ServerReplica:
    """A replica: a server on this machine, and what forwards requests to it."""

    def __init__(self, repository: str, flags: dict[str, Any]) -> None:
        """Starts the server, and returns once all models can answer.

        Raises:
            ServeError: If it cannot start.
        """
        self._failure: ServeError | None = None
        self._session: Any = None
        self._server = NodeServer(repository, "127.0.0.1", flags)
        self._server.wait_until_ready()
        self._server.watch(self._fail)

    def check_health(self) -> None:
        """Raises where the server cannot be started again."""
        if self._failure is not None:
            raise self._failure

    async def __call__(self, request: Any) -> Any:
        """Forwards a request."""
        aiohttp, responses = ray_library("aiohttp", _EXTRA), ray_library("starlette.responses", _EXTRA)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(limit=0),
            )
        url = ray_library("yarl", _EXTRA).URL(f"http://{self._server.http}{_target(request.scope)}", encoded=True)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP]
        try:
            answer = await self._session.request(
                request.method, url, headers=headers, data=await request.body(), allow_redirects=False
            )
        except aiohttp.ClientError as error:
            return responses.JSONResponse({"error": f"the server is being started again: {error}"}, 503)
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        if "Content-Length" in answer.headers:
            async with answer:
                return responses.Response(await answer.read(), answer.status, passed)
        return responses.StreamingResponse(_parts(answer), answer.status, passed)

    def _fail(self, error: ServeError) -> None:
        self._failure = error


async def _parts(answer: Any) -> AsyncIterator[bytes]:
    """What arrives of an answer, as it arrives."""
    async with answer:
        async for part in answer.content.iter_any():
            yield part


def _target(scope: Mapping[str, Any]) -> str:
    """The path of a request below the route of its application, and its query."""
    path = scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or scope["path"]
    path = path.removeprefix(scope.get("root_path", "").rstrip("/")) or "/"
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path

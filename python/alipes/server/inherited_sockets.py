"""Which inherited listening socket is whose: by its name, or else by the address that it listens at."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from alipes.config.listener_options import Endpoint, InheritedSocket
from alipes.config.options import ServerOptions
from alipes.errors import ServerStartError

__all__ = ["sockets_by_endpoint"]

_ENDPOINTS: Final = ("http", "grpc", "metrics")


def sockets_by_endpoint(options: ServerOptions) -> dict[str, socket.socket]:
    """The inherited sockets by the endpoint that each is for.

    Raises:
        ServerStartError: If one is no listening socket, or belongs to no endpoint, or to one that has another.
    """
    found: dict[str, socket.socket] = {}
    with ExitStack() as opened:
        for one in options.inherited:
            listening = opened.enter_context(_opened(one))
            found[_name_of(one, listening, options, found)] = listening
        opened.pop_all()  # they stay open: the caller has them now
    return found


def _name_of(
    one: InheritedSocket, opened: socket.socket, options: ServerOptions, found: Mapping[str, socket.socket]
) -> str:
    """The endpoint that a socket is for."""
    name = one.name if one.name in _ENDPOINTS else _endpoint_at(options, opened)
    if name is None:
        raise ServerStartError(
            f"{_called(one)} listens at {_place(opened)}, which is the address of no endpoint: call it http, grpc "
            "or metrics (FileDescriptorName= in its unit), or give the endpoint that port"
        )
    if not _endpoint(options, name).enabled:
        raise ServerStartError(f"{_called(one)} is for {name}, which is switched off: allow {name}, or leave it out")
    if name in found:
        raise ServerStartError(f"{_called(one)} is for {name}, which has one already: leave one of them out")
    return name


def _opened(one: InheritedSocket) -> socket.socket:
    try:
        os.set_inheritable(one.descriptor, False)
        opened = socket.socket(fileno=one.descriptor)
    except OSError as error:
        raise ServerStartError(f"{_called(one)} is no socket: {error.strerror}") from error
    if opened.type != socket.SOCK_STREAM or not opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        opened.close()
        raise ServerStartError(f"{_called(one)} does not listen for connections: take out Accept=yes, or open it first")
    return opened


def _called(one: InheritedSocket) -> str:
    name = f" '{one.name}'" if one.name else ""
    return f"the inherited socket{name} (descriptor {one.descriptor})"


def _endpoint(options: ServerOptions, name: str) -> Endpoint:
    endpoint: Endpoint = getattr(options, name)
    return endpoint


def _endpoint_at(options: ServerOptions, opened: socket.socket) -> str | None:
    return next((name for name in _ENDPOINTS if _listens_for(_endpoint(options, name), opened)), None)


def _listens_for(endpoint: Endpoint, opened: socket.socket) -> bool:
    if opened.family == socket.AF_UNIX:
        return endpoint.is_path and endpoint.address == f"unix:{opened.getsockname()}"
    return not endpoint.is_path and opened.getsockname()[1] == endpoint.port


def _place(opened: socket.socket) -> str:
    name = opened.getsockname()
    return f"unix:{name}" if opened.family == socket.AF_UNIX else f"{name[0]}:{name[1]}"

"""Sockets that another process opened: which are meant, and whose each is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from alipes.config.inherited import read_inherited
from alipes.config.listener_options import InheritedSocket
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.errors import ConfigError, ServerStartError
from alipes.server.inherited_sockets import sockets_by_endpoint


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    """Two listening sockets, which nobody else closes."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]


def options(*flags: str, inherited: list[tuple[socket.socket, str]]) -> ServerOptions:
    # Copies: each belongs to the function that takes it.
    sockets = tuple(InheritedSocket(descriptor=one.dup().detach(), name=name) for one, name in inherited)
    return replace(parse_flags(["models", *flags], {}), inherited=sockets)


def ports(found: dict[str, socket.socket]) -> dict[str, int]:
    known = {name: one.getsockname()[1] for name, one in found.items()}
    for one in found.values():
        one.close()
    return known


def test_variables_of_another_process_mean_nothing() -> None:
    variables = {"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http"}
    assert read_inherited(variables, 8) == ()
    found = [(one.descriptor, one.name) for one in read_inherited(variables, 7)]
    assert found == [(3, "http"), (4, "")]


@pytest.mark.parametrize("text", ["x", "-1", "65", "1.5"])
def test_a_number_of_sockets_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="LISTEN_FDS is"):
        read_inherited({"LISTEN_PID": "7", "LISTEN_FDS": text}, 7)


def test_sockets_are_known_by_their_names(opened: list[socket.socket]) -> None:
    first, second = opened
    found = sockets_by_endpoint(options(inherited=[(first, "grpc"), (second, "http")]))
    assert ports(found) == {"grpc": first.getsockname()[1], "http": second.getsockname()[1]}


def test_sockets_without_such_a_name_are_known_by_their_ports(opened: list[socket.socket]) -> None:
    port = opened[0].getsockname()[1]
    found = sockets_by_endpoint(options(f"--grpc-port={port}", inherited=[(opened[0], "alipes.socket")]))
    assert ports(found) == {"grpc": port}


def test_a_path_is_known_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        bound.listen()
        found = sockets_by_endpoint(options(f"--http-address=unix:{path}", inherited=[(bound, "")]))
        assert list(found) == ["http"]
        found["http"].close()


@pytest.mark.parametrize(
    ("names", "flags", "words"),
    [
        (["x"], [], "which is the address of no endpoint: call it http, grpc or metrics"),
        (["grpc"], ["--allow-grpc=false"], "is for grpc, which is switched off"),
        (["http", "http"], [], "is for http, which has one already"),
    ],
)
def test_a_socket_that_belongs_nowhere_is_an_error(
    names: list[str], flags: list[str], words: str, opened: list[socket.socket]
) -> None:
    wanted = options(*flags, inherited=list(zip(opened, names, strict=False)))
    with pytest.raises(ServerStartError, match=words):
        sockets_by_endpoint(wanted)


def test_what_does_not_listen_is_an_error() -> None:
    with socket.socket() as idle, pytest.raises(ServerStartError, match="does not listen for connections"):
        sockets_by_endpoint(options(inherited=[(idle, "http")]))
    with socket.socket() as closed:
        wanted = options(inherited=[(closed, "http")])
    socket.socket(fileno=wanted.inherited[0].descriptor).close()
    with pytest.raises(ServerStartError, match="is no socket"):
        sockets_by_endpoint(wanted)

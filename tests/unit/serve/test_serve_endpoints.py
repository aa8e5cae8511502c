"""Which ports flags ask for, and which ones are taken."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from alipes.errors import ServeError
from alipes.serve.endpoints import ServerEndpoint, choose_ports, flag_words, is_free, requested_endpoints


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (None, []),
        ("--grpc-port 8003 --log-verbose=1", ["--grpc-port", "8003", "--log-verbose=1"]),
        (["--grpc-port", "8003"], ["--grpc-port", "8003"]),
        (["--grpc-port 8003", "--log-verbose=1"], ["--grpc-port", "8003", "--log-verbose=1"]),
        (["--a=1 --b=2"], ["--a=1", "--b=2"]),
        (["--log-file=/with space"], ["--log-file=/with space"]),
        (["/with space"], ["/with space"]),
    ],
)
def test_flags_are_split_as_a_shell_would(flags: list[str] | None, words: list[str]) -> None:
    assert flag_words(flags) == words


def test_without_flags_endpoints_have_the_usual_ports() -> None:
    ports = {
        name: (endpoint.requested, endpoint.port, endpoint.fixed) for name, endpoint in requested_endpoints([]).items()
    }
    assert ports == {"http": (8000, 8000, False), "grpc": (8001, 8001, False), "metrics": (8002, 8002, False)}


def test_a_port_that_flags_name_is_the_port() -> None:
    assert requested_endpoints(["--grpc-port", "8003", "--grpc-address=127.0.0.1"])["grpc"] == ServerEndpoint(
        "127.0.0.1", 8003, 8003, fixed=True
    )
    assert requested_endpoints(["--grpc-port=1", "--grpc-port=2"])["grpc"].port == 2


def test_port_0_is_any_port_and_known_by_the_usual_one() -> None:
    assert requested_endpoints(["--http-port=0"])["http"] == ServerEndpoint("", 8000, 0, fixed=False)
    chosen = choose_ports({"http": ServerEndpoint("127.0.0.1", 8000, 0, fixed=False)})["http"]
    assert chosen.requested == 8000
    assert chosen.port != 0


def test_an_endpoint_that_flags_close_is_absent() -> None:
    assert set(requested_endpoints(["--allow-metrics=false"])) == {"http", "grpc"}


@pytest.mark.parametrize("text", ["", "x", "65536", "-1"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ServeError, match="--grpc-port is"):
        requested_endpoints([f"--grpc-port={text}"])


def test_another_port_is_chosen_where_the_usual_one_is_in_use(used_port: int) -> None:
    chosen = choose_ports({"grpc": ServerEndpoint("127.0.0.1", used_port, used_port, fixed=False)})["grpc"]
    assert chosen.requested == used_port
    assert chosen.port not in (0, used_port)


def test_a_reserved_port_is_not_chosen() -> None:
    requested = choose_ports({"grpc": ServerEndpoint("127.0.0.1", 8001, 0, fixed=False)})["grpc"]
    endpoint = ServerEndpoint("127.0.0.1", 8001, requested.port, fixed=False)
    assert choose_ports({"grpc": endpoint}, reserved_ports={requested.port})["grpc"].port != requested.port


def test_a_named_port_in_use_is_an_error(used_port: int) -> None:
    with pytest.raises(ServeError, match=f"port {used_port}, which --grpc-port names, is already in use"):
        choose_ports({"grpc": ServerEndpoint("127.0.0.1", used_port, used_port, fixed=True)})


def test_a_port_in_use_is_not_free_at_any_address(used_port: int) -> None:
    assert not is_free("127.0.0.1", used_port)
    assert not is_free("", used_port)


@pytest.mark.parametrize(
    ("host", "address"),
    [("", "127.0.0.1:5"), ("0.0.0.0", "127.0.0.1:5"), ("127.0.0.7", "127.0.0.7:5"), ("::", "[::1]:5")],
)
def test_local_clients_get_a_reachable_address(host: str, address: str) -> None:
    assert ServerEndpoint(host, 5, 5, fixed=True).address == address


def test_the_short_names_of_flags_count_too() -> None:
    endpoints = requested_endpoints(["--port=9000", "--host", "127.0.0.1", "--grpc_port=7"])
    assert {name: (one.host, one.port, one.fixed) for name, one in endpoints.items()} == {
        "http": ("127.0.0.1", 9000, True),
        "grpc": ("127.0.0.1", 7, True),
        "metrics": ("127.0.0.1", 9002, True),
    }
    assert [one.fixed for one in requested_endpoints(["--port=0"]).values()] == [False] * 3


@pytest.mark.parametrize("word", ["--http-use-ssl", "--http-use-ssl=true", "--http-use-ssl=1"])
def test_flags_say_which_endpoint_is_encrypted(word: str) -> None:
    endpoints = requested_endpoints([word, "--grpc-use-ssl=false"])
    assert [endpoints[name].encrypted for name in ("http", "grpc", "metrics")] == [True, False, False]

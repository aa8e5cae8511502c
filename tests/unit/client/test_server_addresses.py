"""Addresses of one server and of several, as people write them."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from alipes.client import Client
from alipes.client.servers.addresses import Place, are_several, places, read_addresses
from alipes.errors import ConfigError, TransportError


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("a:1", ["a:1"]),
        ("a:1,b:2", ["a:1", "b:2"]),
        ("a:1 , grpc://b:2", ["a:1", "grpc://b:2"]),
        (["a:1", "b:2"], ["a:1", "b:2"]),
        (("a:1", "b:2,c:3"), ["a:1", "b:2", "c:3"]),
        ("unix:/run/a,b", ["unix:/run/a,b"]),
        ("dns:///name:8001", ["dns:///name:8001"]),
    ],
)
def test_addresses_are_read_from_a_text_and_from_a_list(address: Any, read: list[str]) -> None:
    assert read_addresses(address) == read
    assert are_several(address) == (len(read) > 1 or read[0].startswith("dns:"))


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ([], "or a list of such texts, got []"),
        ("a:1,", "or a list of such texts, got 'a:1,'"),
        (["a:1", 2], "or a list of such texts, got 2 (int)"),
        (b"a:1", "or a list of such texts, got b'a:1'"),
        (["a:1", "a:1"], "the address 'a:1' is there twice"),
        ("dns:///name", "write a name with its port, dns:///name:8001"),
        ("dns:name:8001", "write a name with its port, dns:///name:8001"),
        (["a:1", "ftp://b:2"], "'ftp' is unknown"),
    ],
)
def test_what_is_no_list_of_addresses_is_refused(address: Any, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Client(address)
    assert text in str(raised.value)


def test_a_list_of_one_address_is_that_address() -> None:
    assert repr(Client(["127.0.0.1:1"])) == "Client('grpc://127.0.0.1:1')"


def test_several_addresses_and_a_transport_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match="transport: expected None beside several addresses"):
        Client(["a:1", "b:2"], transport=print)


def test_a_name_stands_for_each_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        assert (host, port) == ("name", 8001)
        four, six = socket.AF_INET, socket.AF_INET6
        numbers = [(six, "::2"), (four, "127.0.0.2"), (four, "127.0.0.3"), (four, "127.0.0.2")]
        return [(family, socket.SOCK_STREAM, 6, "", (number, port)) for family, number in numbers]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert places(["dns:///name:8001", "a:1"]) == [
        Place("127.0.0.2:8001", "name"),
        Place("127.0.0.3:8001", "name"),
        Place("a:1"),
    ]


def test_a_name_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(TransportError, match="the name 'nobody' of 'dns:///nobody:1' cannot be looked up: Name or"):
        Client("dns:///nobody:1")

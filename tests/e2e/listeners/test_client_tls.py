"""Our own clients over encrypted connections: which certificates are trusted, and the errors for all others."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, InferenceClient, Tls
from alipes.errors import ConfigError, TlsError, TransportError
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.certificates import Authority, Files, encrypted, self_signed
from support.command import alipes as command
from support.file_server import file_server
from support.models import add_model, times
from support.server import ServerDidNotStart, ServerProcess
from support.switch import Switch
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]
Array = np.ndarray[Any, np.dtype[np.float32]]

SCHEMES = ["https", "grpcs"]

BY_THE_SYSTEM = """
import sys

import numpy as np
from alipes.client import Client

assert Client(sys.argv[1]).infer("double", np.ones((1, 2), np.float32)).tolist() == [[2, 2]]
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """One model, `double`, with any number of columns."""
    folder = tmp_path / "models"
    folder.mkdir()
    add_model(folder, "double", times(columns="columns"))
    return folder


def both(files: Files, clients: Path | None = None) -> list[str]:
    """The flags that encrypt the endpoints for HTTP and gRPC."""
    return [flag for endpoint in ("http", "grpc") for flag in encrypted(endpoint, files, clients)]


def address(server: ServerProcess, scheme: str) -> str:
    return f"{scheme}://{server.grpc if scheme.startswith('grpc') else server.http}"


def rows(columns: int = 2) -> Array:
    return np.ones((1, columns), np.float32)


def doubled(address: str, tls: Tls | None) -> Any:
    with Client(address, tls=tls) as client:
        return client.infer("double", rows()).tolist()


def test_both_plain_clients_ask_over_encrypted_connections(models: Path, authority: Authority, serve: Serve) -> None:
    server = serve(models, *both(authority.files("server")))
    tls = Tls(roots=authority.root)

    async def several(where: str) -> list[Any]:
        async with AsyncClient(where, tls=tls) as client:
            return list(await asyncio.gather(*(client.infer("double", rows()) for _ in range(8))))

    for scheme in SCHEMES:
        where = address(server, scheme)
        with Client(where, tls=tls) as client:
            assert client.is_ready()
            for columns in (1, 5_000, 1_000_000):  # one record, a few, and more than a socket takes at once
                np.testing.assert_array_equal(client.infer("double", rows(columns)), 2 * rows(columns))
        assert [answer.tolist() for answer in asyncio.run(several(where))] == 8 * [[[2, 2]]]
    assert doubled(server.grpc, tls) == [[2, 2]], "without a scheme, what is said of encryption tells"


def test_stream_client_accepts_tls_and_tritonclient_options(models: Path, authority: Authority, serve: Serve) -> None:
    server = serve(models, *both(authority.files("server"), authority.root))
    known = authority.files("client")
    own = Tls(authority.root, known.certificate, known.key)
    theirs = {
        "ssl": True,
        "root_certificates": str(authority.root),
        "certificate_chain": str(known.certificate),
        "private_key": str(known.key),
    }
    ways: list[tuple[str, dict[str, Any]]] = [
        (address(server, "grpcs"), {"tls": own}),
        (server.grpc, {"tls": own}),
        (server.grpc, theirs),
    ]
    for where, options in ways:
        with InferenceClient(where, "double", **options) as client:
            for number in range(3):
                client.infer(rows(1), number)
        assert [(y.tolist(), number) for y, number, _ in client.get(until_empty=True)] == [
            ([[2]], number) for number in range(3)
        ]


def test_an_encrypted_stream_resumes_after_a_broken_connection(
    models: Path, authority: Authority, serve: Serve
) -> None:
    server = serve(models, *both(authority.files("server")))
    with Switch(server.grpc) as switch:
        tls = Tls(authority.root)
        with InferenceClient(switch.address, "double", tls=tls, retries=8, reconnect_s=TIMEOUT_S) as client:
            for number in range(20):
                if number == 10:
                    switch.cut()
                client.infer(number * rows(1), number)
        answers = client.get(until_empty=True)
    assert [(float(y[0, 0]), number) for y, number, _ in answers] == [(2.0 * number, number) for number in range(20)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_untrusted_or_misnamed_servers_are_refused(
    models: Path, authority: Authority, serve: Serve, scheme: str
) -> None:
    server = serve(models, *both(authority.files("server", authority.issue("elsewhere.example"))))
    where = address(server, scheme)
    with pytest.raises(TlsError, match=r"issued by nobody that this client trusts: .*Tls\(roots="):
        doubled(where, None)
    with pytest.raises(TlsError, match=r"another name \(.*elsewhere\.example.*Tls\(server_name="):
        doubled(where, Tls(authority.root))
    assert doubled(where, Tls(authority.root, server_name="elsewhere.example")) == [[2, 2]]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_certificate_that_has_expired_is_refused(
    models: Path, authority: Authority, serve: Serve, scheme: str
) -> None:
    old = authority.issue("localhost", "127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1))
    server = serve(models, *both(authority.files("server", old)))
    with pytest.raises(TlsError, match="has expired") as caught:
        doubled(address(server, scheme), Tls(authority.root))
    assert not caught.value.reached


def test_mutual_tls_admits_known_clients_only(models: Path, authority: Authority, serve: Serve, tmp_path: Path) -> None:
    server = serve(models, *both(authority.files("server"), authority.root))
    known = authority.files("client")
    (other := tmp_path / "other").mkdir()
    stranger = Authority(other).files("client")

    async def awaited(where: str, tls: Tls) -> Any:
        async with AsyncClient(where, tls=tls) as client:
            return (await client.infer("double", rows())).tolist()

    for scheme in SCHEMES:
        where = address(server, scheme)
        assert doubled(where, Tls(authority.root, known.certificate, known.key)) == [[2, 2]]
        with pytest.raises(TlsError, match=r"asks for a certificate of the client: give it as Tls\(certificate="):
            doubled(where, Tls(authority.root))
        with pytest.raises(TlsError, match="asks for a certificate"):
            asyncio.run(awaited(where, Tls(authority.root)))
        with pytest.raises(TlsError, match="does not accept this client's certificate"):
            doubled(where, Tls(authority.root, stranger.certificate, stranger.key))
    with pytest.raises(TlsError, match="asks for a certificate"):
        InferenceClient(server.grpc, "double", tls=Tls(authority.root))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_encrypted_client_at_a_plain_endpoint_gets_a_hint(
    models: Path, authority: Authority, serve: Serve, scheme: str
) -> None:
    server = serve(models)
    with pytest.raises(TlsError, match="is not encrypted: ask it with http:// or grpc://"):
        doubled(address(server, scheme), Tls(authority.root))


def test_a_plain_client_at_an_encrypted_endpoint_fails(models: Path, authority: Authority, serve: Serve) -> None:
    server = serve(models, *both(authority.files("server")))
    with pytest.raises(TransportError):
        doubled(address(server, "http"), None)
    with pytest.raises(TransportError):
        doubled(address(server, "grpc"), None)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_self_signed_certificate_is_trusted_as_a_root(
    models: Path, serve: Serve, tmp_path: Path, scheme: str
) -> None:
    files = self_signed(tmp_path)
    server = serve(models, *both(files))
    where = address(server, scheme).replace("127.0.0.1", "localhost")
    assert doubled(where, Tls(files.certificate)) == [[2, 2]]
    with pytest.raises(TlsError, match="another name"):
        doubled(address(server, scheme), Tls(files.certificate))


def test_a_self_signed_certificate_expires_as_any_other(models: Path, serve: Serve, tmp_path: Path) -> None:
    files = self_signed(tmp_path, valid_days=-1)
    server = serve(models, *both(files))
    with pytest.raises(TlsError, match="has expired"):
        doubled(address(server, "https").replace("127.0.0.1", "localhost"), Tls(files.certificate))


def in_days(days: int) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


LOCAL = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
FOR_CLIENTS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
FOR_SERVERS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])

# What a server shows, made in a folder by an authority that the client trusts -> what the client says.
REFUSED: dict[str, tuple[Callable[[Authority, Path], Files], str]] = {
    "a stranger's": (
        lambda _, folder: Authority(folder).files("stranger"),
        "was issued by nobody that this client trusts: give the authority's certificate as Tls(roots=...)",
    ),
    "an authority's own": (
        lambda _, folder: self_signed(folder),
        "is an authority's own, as `openssl req -x509` makes it: give this very certificate as Tls(roots=...)",
    ),
    "expired": (
        lambda authority, _: authority.files("old", authority.issue(not_after=in_days(-1))),
        "has expired: it has to be renewed there",
    ),
    "not yet valid": (
        lambda authority, _: authority.files("new", authority.issue(not_before=in_days(2), not_after=in_days(9))),
        "is not valid yet: compare the clocks of both machines",
    ),
    "of another name": (
        lambda authority, _: authority.files("other", authority.issue("a.example", "b.example")),
        "is for another name (a.example, b.example, not 127.0.0.1): ask for one that it bears, or say which it bears "
        "as Tls(server_name=...)",
    ),
    "of no name": (
        lambda authority, _: authority.with_extensions("nameless", FOR_SERVERS),
        "bears no name: it has to be issued again with some in its subjectAltName",
    ),
    "for clients": (
        lambda authority, _: authority.with_extensions("clients", LOCAL, FOR_CLIENTS),
        "is for another use (clientAuth): issue it again with extendedKeyUsage=serverAuth",
    ),
    "of version 1": (
        lambda authority, _: authority.version_1("old"),
        "is not of X.509 version 3, as `openssl x509 -req` issues it without extensions: it has to be issued again "
        "with some",
    ),
}


@pytest.mark.parametrize("shown", REFUSED)
def test_each_certificate_that_is_refused_is_a_sentence_with_what_to_do(
    authority: Authority, tmp_path: Path, shown: str
) -> None:
    make, text = REFUSED[shown]
    (folder := tmp_path / "shown").mkdir()
    files = make(authority, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with file_server(context) as server:
        with pytest.raises(TlsError) as caught:
            doubled(server.address, Tls(authority.root))
        assert str(caught.value).endswith(f"the server's certificate {text}")
        by_command = command("infer", "double", "[[1, 2]]", f"--url={server.address}", f"--tls-roots={authority.root}")
    assert by_command.code == 1
    assert "Tls(" not in by_command.message
    assert text.partition(": ")[0] in by_command.message


def test_a_server_says_of_each_clients_certificate_why_it_is_refused(
    models: Path, authority: Authority, serve: Serve, tmp_path: Path
) -> None:
    endpoints = ("http", "grpc", "metrics")
    own = authority.files("server")
    server = serve(models, *(flag for name in endpoints for flag in encrypted(name, own, authority.root)))
    (folder := tmp_path / "other").mkdir()
    wanted = {
        "http": (self_signed(folder), "is an authority's own, as .*: issue one for the client by that authority"),
        "grpc": (Authority(folder).files("stranger"), "was issued by nobody that this listener trusts: add its auth"),
        "metrics": (
            authority.with_extensions("servers", LOCAL, FOR_SERVERS),
            r"is for another use \(serverAuth\): issue it again with extendedKeyUsage=clientAuth",
        ),
    }
    for endpoint, (files, text) in wanted.items():
        host, _, port = getattr(server, endpoint).rpartition(":")
        with (
            pytest.raises(OSError),
            socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
            authority.client_context(files).wrap_socket(plain, server_hostname=host) as link,
        ):
            link.recv(1)
        server.wait_for_output(f"handshake with 127.0.0.1 failed: the client's certificate {text}")


def test_a_key_of_another_certificate_is_named_at_the_start(models: Path, authority: Authority, serve: Serve) -> None:
    mixed = Files(authority.files("server").certificate, authority.files("other").key)
    with pytest.raises(ServerDidNotStart) as caught:
        serve(models, *encrypted("http", mixed))
    assert "the key that goes with it is another certificate's" in " ".join(caught.value.output.split())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_certificate_of_version_1_is_refused_with_that_reason(
    models: Path, authority: Authority, serve: Serve, scheme: str
) -> None:
    server = serve(models, *both(authority.files("server"), authority.root))
    old = authority.version_1("old")
    context = ssl.create_default_context(cafile=str(authority.root))
    context.load_cert_chain(old.certificate, old.key)
    host, _, port = address(server, scheme).rpartition("/")[2].rpartition(":")
    # Another client shows it; the refusal comes after the client's side of the handshake.
    with (
        pytest.raises(OSError),
        socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as link,
    ):
        link.recv(1)
    server.wait_for_output("handshake with 127.0.0.1 failed: the client's certificate is not of X.509 version 3")


def test_a_client_refuses_a_certificate_of_version_1_of_its_own(authority: Authority) -> None:
    old = authority.version_1("old")
    with pytest.raises(ConfigError, match=r"old\.pem.*: it is not of X\.509 version 3"):
        Client("https://localhost:1", tls=Tls(authority.root, old.certificate, old.key))


def test_what_the_system_trusts_is_trusted_by_default(models: Path, authority: Authority, serve: Serve) -> None:
    server = serve(models, *both(authority.files("server")))
    command = [sys.executable, "-c", BY_THE_SYSTEM, address(server, "https")]
    environment = os.environ | {"SSL_CERT_FILE": str(authority.root)}
    ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr


def test_unusable_files_are_refused_when_the_client_is_made(authority: Authority, tmp_path: Path) -> None:
    known = authority.files("client")
    missing, nothing = tmp_path / "missing.pem", tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    cases = [
        (lambda: Tls(missing), "missing.pem.*there is no such file"),
        (lambda: Tls(nothing), "nothing.pem.*found none"),
        (lambda: Tls(authority.root, known.certificate, authority.root), "root.pem.*expected a key"),
        (lambda: Tls(authority.root, known.certificate), "a certificate without its key"),
        (lambda: Tls(authority.root, key=known.key), "a key without its certificate"),
    ]
    for tls, told in cases:
        with pytest.raises(ConfigError, match=told):
            Client("grpcs://localhost:1", tls=tls())
    with pytest.raises(ConfigError, match="plain connections"):
        Client("http://localhost:1", tls=Tls(authority.root))
    with pytest.raises(TlsError, match="no certificate can bear the name"):
        Client("https://localhost:1", tls=Tls(authority.root, server_name="a b"))
    with pytest.raises(ConfigError, match="creds"):
        InferenceClient("localhost:1", "double", creds=object())
    with pytest.raises(ConfigError, match="ssl and tls"):
        InferenceClient("localhost:1", "double", ssl=True, tls=Tls(authority.root))

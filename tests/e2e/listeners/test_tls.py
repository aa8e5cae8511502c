"""Encrypted connections, with and without a certificate of the client, and with one that changes."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.attack import connect, rest
from support.certificates import Authority, Files, encrypted
from support.curl import curl
from support.server import ServerDidNotStart, ServerProcess
from support.waiting import until

LIVE = "/inference.GRPCInferenceService/ServerLive"


def get(address: str, context: ssl.SSLContext, path: str = "/v2/health/live") -> int:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def live(address: str, credentials: grpc.ChannelCredentials) -> bytes:
    with grpc.secure_channel(address, credentials) as channel:
        return bytes(channel.unary_unary(LIVE)(b"", timeout=30))


def serial(address: str, context: ssl.SSLContext) -> str:
    """The serial number of the certificate that a server shows."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=30) as link,
        context.wrap_socket(link, server_hostname="localhost") as encrypted_link,
    ):
        shown = encrypted_link.getpeercert()
    assert shown is not None
    return str(shown["serialNumber"])


def test_every_endpoint_can_be_encrypted(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    files = authority.files("server")
    flags = [flag for endpoint in ("http", "grpc", "metrics") for flag in encrypted(endpoint, files)]
    server = serve(models, *flags)
    assert get(server.http, authority.client_context()) == 200
    assert get(server.metrics, authority.client_context(), "/metrics") == 200
    assert live(server.grpc, grpc.ssl_channel_credentials(authority.root_pem)) == b"\x08\x01"
    with pytest.raises(ssl.SSLCertVerificationError):
        get(server.http, ssl.create_default_context())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_in_use_are_spoken_and_no_older_one(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess], version: ssl.TLSVersion
) -> None:
    server = serve(models, *encrypted("http", authority.files("server")))
    context = authority.client_context()
    context.minimum_version = context.maximum_version = version
    assert get(server.http, context) == 200


@pytest.mark.parametrize(("offered", "spoken"), [(("h2", "http/1.1"), "h2"), (("http/1.1",), "http/1.1"), ((), None)])
def test_the_protocol_is_agreed_on_with_the_encryption(
    models: Path,
    authority: Authority,
    serve: Callable[..., ServerProcess],
    offered: tuple[str, ...],
    spoken: str | None,
) -> None:
    server = serve(models, *encrypted("http", authority.files("server")))
    host, _, port = server.http.rpartition(":")
    context = authority.client_context(protocols=offered)
    with (
        socket.create_connection((host, int(port)), timeout=30) as link,
        context.wrap_socket(link, server_hostname="localhost") as encrypted_link,
    ):
        assert encrypted_link.selected_alpn_protocol() == spoken


def test_curl_infers_over_encrypted_http2(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(models, *encrypted("http", authority.files("server")))
    body = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
    url = f"https://localhost:{server.http.rpartition(':')[2]}/v2/models/double/infer"
    printed = curl("-4", "--cacert", authority.root, "-d", body, "-w", "\n%{http_version}", url).decode()
    answer, _, version = printed.rpartition("\n")
    assert (version, json.loads(answer)["outputs"][0]["data"]) == ("2", [2.0, 4.0])


def test_tritons_clients_infer_over_encrypted_connections(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    files = authority.files("server")
    server = serve(models, *(flag for endpoint in ("http", "grpc") for flag in encrypted(endpoint, files)))
    values = np.array([[1, 2]], np.float32)
    endpoints: list[Any] = [
        (http_client, server.http, {"ssl": True, "ssl_context_factory": authority.client_context}),
        (grpc_client, server.grpc, {"ssl": True, "root_certificates": str(authority.root)}),
    ]
    for module, address, options in endpoints:
        tensor = module.InferInput("X", [1, 2], "FP32")
        tensor.set_data_from_numpy(values)
        with module.InferenceServerClient(address, **options) as client:
            assert client.infer("double", [tensor]).as_numpy("Y").tolist() == [[2, 4]]


def test_a_client_without_the_required_certificate_is_refused(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    files = authority.files("server")
    flags = [flag for endpoint in ("http", "grpc") for flag in encrypted(endpoint, files, authority.root)]
    server = serve(models, *flags)
    known = authority.files("client")
    stranger = Authority(_folder(tmp_path / "other")).files("client")
    assert get(server.http, authority.client_context(known)) == 200
    for wrong in (None, stranger):
        with pytest.raises(OSError):
            get(server.http, authority.client_context(wrong))
        with pytest.raises(grpc.RpcError) as caught:
            live(server.grpc, _credentials(authority, wrong))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert live(server.grpc, _credentials(authority, known)) == b"\x08\x01"


def test_a_new_certificate_is_used_without_a_restart(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    files = authority.files("server")
    flags = encrypted("http", files)
    server = serve(models, *flags, "--ssl-reload-secs=0.05")
    context = authority.client_context()
    kept = http.client.HTTPSConnection("localhost", int(server.http.rpartition(":")[2]), context=context, timeout=30)
    kept.request("GET", "/v2/health/live")
    kept.getresponse().read()
    first = serial(server.http, context)
    files.write(authority.issue())
    server.wait_for_output("the HTTP certificate '.*' was read again")
    until(lambda: serial(server.http, context) != first, "the new certificate is not shown")
    second = serial(server.http, context)
    files.certificate.write_text("no certificate")
    server.wait_for_output(
        "the HTTP certificate stays as it is, since the new one cannot be used: cannot use .*found none"
    )
    assert serial(server.http, context) == second
    # A connection from before goes on.
    kept.request("GET", "/v2/health/live")
    assert kept.getresponse().status == 200
    kept.close()


@pytest.mark.parametrize(
    ("certificate", "key", "text"),
    [
        ("absent.pem", "server.key", "absent.pem' for encrypted connections: there is no such file"),
        ("server.key", "server.key", "expected a certificate as PEM, found none"),
        ("server.pem", "server.pem", "expected a key as PEM"),
        ("server.pem", "other.key", "server.pem' for encrypted connections"),
    ],
)
def test_unusable_files_are_refused_before_models_load(
    models: Path,
    authority: Authority,
    serve: Callable[..., ServerProcess],
    certificate: str,
    key: str,
    text: str,
) -> None:
    folder = authority.files("server").certificate.parent
    authority.files("other")
    flags = ["--grpc-use-ssl", f"--grpc-server-cert={folder / certificate}", f"--grpc-server-key={folder / key}"]
    with pytest.raises(ServerDidNotStart) as caught:
        serve(models, *flags)
    assert (caught.value.exit_code, text in caught.value.output) == (1, True), caught.value.output


def test_a_client_that_never_agrees_is_not_waited_for(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    server = serve(models, *encrypted("http", authority.files("server")), "--header-timeout-secs=2")
    host, _, port = server.http.rpartition(":")
    silent = [socket.create_connection((host, int(port)), timeout=30) for _ in range(20)]
    noisy = socket.create_connection((host, int(port)), timeout=30)
    noisy.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
    for link in [*silent, noisy]:
        _read_to_the_end(link)
        link.close()
    assert get(server.http, authority.client_context()) == 200


def test_a_failed_handshake_is_logged_once_with_its_reason(
    models: Path, authority: Authority, serve: Callable[..., ServerProcess]
) -> None:
    endpoints = ("http", "grpc", "metrics")
    flags = [flag for name in endpoints for flag in encrypted(name, authority.files(name), authority.root)]
    server = serve(models, *flags)
    # Who connects and leaves, as port checks do, has begun no handshake.
    for address in (server.http, server.grpc, server.metrics):
        connect(address).close()
    with pytest.raises(OSError):
        get(server.http, authority.client_context(authority.version_1("old")))
    with pytest.raises(OSError):
        get(server.metrics, authority.client_context())
    with connect(server.grpc) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        rest(plain)
    failed = "handshake with 127.0.0.1 failed: the client"
    server.wait_for_output(f"the HTTP {failed}'s certificate is not of X.509 version 3")
    server.wait_for_output(f"the metrics {failed} shows no certificate")
    server.wait_for_output(f"the gRPC {failed} does not speak TLS")
    for _ in range(20):
        with pytest.raises(OSError):
            get(server.http, authority.client_context())
    assert get(server.http, authority.client_context(authority.files("known"))) == 200
    assert server.output.count("handshake with") == 3


def _read_to_the_end(link: socket.socket) -> None:
    try:
        while link.recv(4096):
            pass
    except ConnectionError:
        pass


def _credentials(authority: Authority, files: Files | None) -> grpc.ChannelCredentials:
    shown: Sequence[bytes | None] = (None, None)
    if files is not None:
        shown = (files.key.read_bytes(), files.certificate.read_bytes())
    return grpc.ssl_channel_credentials(authority.root_pem, *shown)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path

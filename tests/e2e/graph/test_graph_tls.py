"""Steps whose services are reached over TLS."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.certificates import Authority, self_signed
from support.file_server import file_server
from support.graph_steps import Steps, node, post_graph, write_graph
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return folder_authority(tmp_path / "trusted")


@pytest.fixture
def steps(authority: Authority) -> Iterator[Steps]:
    with Steps(encryption=authority.server_context()) as services:
        yield services


def folder_authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


def graph_of(folder: Path, steps: Steps) -> str:
    return f"--graph={write_graph(folder, {'root': node('Sequence', {'serviceUrl': steps.url('/m')})})}"


def test_a_step_over_tls_answers_over_connections_that_stay(
    steps: Steps, authority: Authority, tmp_path: Path, serve: Serve
) -> None:
    server = serve(graph_of(tmp_path, steps), f"--graph-root-cert={authority.root}", "--http-thread-count=1")
    for _ in range(3):
        assert post_graph(server.http, b'{"a":1}') == (200, "application/json", b'{"a":1}')
    assert steps.bodies("/m") == [b'{"a":1}'] * 3
    assert len({received.connection for received in steps.received}) == 1


def test_roots_of_the_system_are_those_of_its_variable(
    steps: Steps, authority: Authority, tmp_path: Path, serve: Serve
) -> None:
    server = serve(graph_of(tmp_path, steps), environment={"SSL_CERT_FILE": str(authority.root)})
    assert post_graph(server.http, b"{}")[0] == 200


def test_a_step_whose_certificate_nobody_vouches_for_is_not_called(steps: Steps, tmp_path: Path, serve: Serve) -> None:
    other = folder_authority(tmp_path / "other")
    server = serve(graph_of(tmp_path, steps), f"--graph-root-cert={other.root}")
    status, _, body = post_graph(server.http, b"{}")
    assert (status, json.loads(body)["cause"].startswith(f'Post "{steps.url("/m")}": tls: ')) == (500, True), body
    assert not steps.received


def test_a_certificate_of_another_host_is_refused(authority: Authority, tmp_path: Path, serve: Serve) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue("elsewhere.example").configure_cert(context)
    with Steps(encryption=context) as steps:
        server = serve(graph_of(tmp_path, steps), f"--graph-root-cert={authority.root}")
        status, _, body = post_graph(server.http, b"{}")
        assert (status, "tls: " in json.loads(body)["cause"]) == (500, True), body
        assert not steps.received


def test_a_steps_certificate_that_is_refused_is_a_sentence_with_what_to_do(tmp_path: Path, serve: Serve) -> None:
    files = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with file_server(context, "localhost") as service:
        url = f"{service.address}/m"
        graph = f"--graph={write_graph(tmp_path, {'root': node('Sequence', {'serviceUrl': url})})}"
        server, trusting = serve(graph), serve(graph, f"--graph-root-cert={files.certificate}")
        assert json.loads(post_graph(server.http, b"{}")[2])["cause"] == (
            f"Post \"{url}\": tls: the certificate of the step's server is an authority's own, as `openssl req -x509` "
            "makes it: name this very certificate with --graph-root-cert"
        )
        # The step is reached, and knows no POST.
        assert post_graph(trusting.http, b"{}")[0] == 501

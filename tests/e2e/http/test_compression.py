"""Compressed bodies: both codings both ways, with the real client, and bounded whatever they expand to."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from collections.abc import Callable

import numpy as np
import psutil
import pytest
import tritonclient.http as http_client
from support.double import assert_serves, document, post
from support.models import add_model
from support.server import ServerProcess

CODINGS = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("outgoing", [None, *CODINGS])
@pytest.mark.parametrize("incoming", [None, *CODINGS])
@pytest.mark.parametrize("binary", [True, False])
def test_the_real_client_understands_every_combination(
    server: ServerProcess, outgoing: str | None, incoming: str | None, binary: bool
) -> None:
    array = np.arange(8, dtype=np.float32).reshape(4, 2)
    tensor = http_client.InferInput("X", [4, 2], "FP32")
    tensor.set_data_from_numpy(array, binary_data=binary)
    output = http_client.InferRequestedOutput("Y", binary_data=binary)
    with http_client.InferenceServerClient(server.http) as client:
        answer = client.infer(
            "double",
            [tensor],
            outputs=[output],
            request_compression_algorithm=outgoing,
            response_compression_algorithm=incoming,
        )
    assert np.array_equal(answer.as_numpy("Y"), array * 2)


@pytest.mark.slow("a gigabyte is expanded")
@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_refused_and_costs_little(
    server: ServerProcess, connection: http.client.HTTPConnection, coding: str
) -> None:
    bomb = CODINGS[coding](bytes(1 << 30))
    before = psutil.Process(server.process.pid).memory_info().rss
    status, text = post(connection, bomb, Content_Encoding=coding)
    assert status == 400
    assert "exceeds the maximum allowed value of 67108864 bytes" in text
    assert psutil.Process(server.process.pid).memory_info().rss - before < 256 << 20
    assert_serves(connection)


def test_the_limit_counts_expanded_bytes(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., ServerProcess]
) -> None:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    server = serve(repository, "--http-max-input-size=1000")
    connection = http.client.HTTPConnection(server.http, timeout=60)
    for length, status in ((1000, 200), (1001, 400)):
        body = gzip.compress(document().ljust(length))
        assert post(connection, body, Content_Encoding="gzip")[0] == status
    connection.close()


@pytest.mark.parametrize("coding", CODINGS)
def test_damaged_data_is_refused_and_the_connection_serves_on(
    connection: http.client.HTTPConnection, coding: str
) -> None:
    whole = CODINGS[coding](document(4))
    status, text = post(connection, whole[:-9], Content_Encoding=coding)
    assert (status, "the compressed request body is damaged" in text) == (400, True), text
    assert post(connection, whole, Content_Encoding=coding)[0] == 200


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    "data", [document(), b"\x1f\x8b\x08" + bytes(7), b"\x78\x01", np.ones(2, "<f4").tobytes(), b""]
)
def test_a_body_that_is_not_compressed_as_it_says_is_refused(
    connection: http.client.HTTPConnection, coding: str, data: bytes
) -> None:
    for length in ({}, {"Inference_Header_Content_Length": "0"}):
        status, text = post(connection, data, Content_Encoding=coding, **length)
        assert (status, "damaged after 0 bytes of its content" in text) == (400, True), text
    assert_serves(connection)


@pytest.mark.parametrize("coding", CODINGS)
def test_bytes_behind_the_end_of_a_compressed_body_are_refused(
    connection: http.client.HTTPConnection, coding: str
) -> None:
    whole = CODINGS[coding](document())
    for tail in (b"x", zlib.compress(b"{}")):
        status, text = post(connection, whole + tail, Content_Encoding=coding)
        assert (status, "the compressed request body is damaged" in text) == (400, True), text


def test_a_coding_is_recognized_by_its_bytes(connection: http.client.HTTPConnection) -> None:
    status, text = post(connection, gzip.compress(document()), Content_Encoding="deflate")
    assert status == 200, text


def test_errors_leave_as_they_are(connection: http.client.HTTPConnection) -> None:
    status, text = post(connection, b"{", Accept_Encoding="gzip")
    assert (status, json.loads(text)["error"][:14]) == (500, "failed to pars")

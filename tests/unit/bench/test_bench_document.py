"""A document is posted as it stands, and only the right numbers are an answer to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bench import document as bench_document
from bench.document import Document, v2_document
from bench.rows.functions import LOUDER, score_document
from bench.servers.process import free_ports
from bench.work import WrongAnswer

ANSWERS = {
    "/right": (200, b"[2.0, 4.0, 6.0]"),
    "/wrong": (200, b"[2.0, 4.0, 7.0]"),
    "/short": (200, b"[2.0, 4.0]"),
    "/words": (200, b"busy"),
    "/later": (503, b"not yet"),
}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _document(path: str) -> Document:
    return Document("louder", path, LOUDER.content, LOUDER.expected)


def test_the_right_answer_passes(port: int) -> None:
    _document("/right").check(port)
    assert _document("/right").is_answered(port)


@pytest.mark.parametrize(
    ("path", "message"),
    [("/wrong", "expected"), ("/short", "expected"), ("/words", "cannot read the answer b'busy'")],
)
def test_any_other_answer_is_noticed_even_at_the_start(path: str, message: str, port: int) -> None:
    with pytest.raises(WrongAnswer, match=message):
        _document(path).check(port)
    with pytest.raises(WrongAnswer, match=message):
        _document(path).is_answered(port)


def test_a_server_that_is_not_ready_does_not_answer_yet(port: int) -> None:
    assert not _document("/later").is_answered(port)
    assert not _document("/right").is_answered(free_ports(1)[0])
    with pytest.raises(WrongAnswer, match="status 503: b'not yet'"):
        _document("/later").check(port)
    with pytest.raises(WrongAnswer, match="no answer"):
        _document("/right").check(free_ports(1)[0])


def test_the_load_tool_gets_the_same_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_document, "WORK", tmp_path)
    assert json.loads(_document("/right").body_file.read_bytes()) == {"sound": [1, 2, 3]}


def test_a_row_of_the_protocol_says_its_shape_and_finds_its_output() -> None:
    document = v2_document("forest", "forest", "input", np.ones((1, 3), np.float32), np.float32([[0.5]]))
    assert document.path == "/v2/models/forest/infer"
    assert json.loads(document.body) == {
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 3], "data": [1.0, 1.0, 1.0]}]
    }
    document.check_body(b'{"outputs": [{"data": [0.5]}]}')
    with pytest.raises(WrongAnswer, match="cannot read"):
        document.check_body(b'{"error": "no"}')


def test_a_batch_in_the_document_repeats_row_and_answer() -> None:
    one, two = score_document(), score_document("two", rows=2)
    assert two.content == {"x": [json.loads(one.body)["x"]] * 2}
    assert two.expected == one.expected * 2

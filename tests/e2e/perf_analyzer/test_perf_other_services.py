"""Services that do not speak the V2 protocol get posts to their own paths."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.command import Done, alipes

FEW = ("--request-count", "6")


class _Recorder(BaseHTTPRequestHandler):
    """Answers every post, and records its path, type and body."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Content-Type"], body))
        answer = b'{"predictions": [1]}'
        self.send_response(500 if b"fail" in body else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """An address, and what was posted there."""
    seen: list[tuple[str, str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Recorder", (_Recorder,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Recorder = tuple[str, list[tuple[str, str, bytes]]]


def measure(recorder: Recorder, folder: Path, kind: str, document: object, *words: str) -> Done:
    (folder / "data.json").write_text(json.dumps({"data": document}))
    service = ("--service-kind", kind, "-u", recorder[0], "--input-data", "data.json")
    return alipes("perf_analyzer", *service, *FEW, *words, folder=folder)


def test_v1_instances_are_rows_by_name_or_alone(recorder: Recorder, tmp_path: Path) -> None:
    steps = [{"x": {"content": [1, 2, 3, 4], "shape": [2, 2]}}, {"x": {"content": [5, 6, 7, 8], "shape": [2, 2]}}]
    done = measure(recorder, tmp_path, "kserve_v1", steps, "-m", "m", "-b", "2")
    assert (done.code, done.err) == (0, "")
    assert "  Service Kind: KServe V1\n" in done.out
    assert "    Request count: 6\n" in done.out
    path, kind, body = recorder[1][0]
    assert (path, kind) == ("/v1/models/m:predict", "application/json")
    assert json.loads(body) == {"instances": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}
    measure(recorder, tmp_path, "kserve_v1", [{"x": [1], "z": ["a"]}], "-m", "m", "-x", "3")
    path, _, body = recorder[1][-1]
    assert path == "/v1/models/m/versions/3:predict"
    assert json.loads(body) == {"instances": [{"x": [1], "z": ["a"]}]}


def test_v1_takes_random_rows_of_the_shapes_that_are_named(recorder: Recorder) -> None:
    words = ("--service-kind", "kserve_v1", "-u", recorder[0], "-m", "m", *FEW)
    assert alipes("perf_analyzer", *words, "--shape", "x:2,3").code == 0
    [row] = json.loads(recorder[1][0][2])["instances"]
    assert [len(part) for part in row] == [3, 3]
    without = alipes("perf_analyzer", *words)
    assert without.code == 99
    assert "give each with --shape, or --input-data" in without.err


def test_torchserve_gets_files(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89pixels")
    step = {"TORCHSERVE_INPUT": [str(tmp_path / "picture")]}
    assert measure(recorder, tmp_path, "torchserve", [step], "-m", "m").code == 0
    assert set(recorder[1]) == {("/predictions/m", "application/octet-stream", b"\x89pixels")}
    named = {"TORCHSERVE_INPUT": [str(tmp_path / "data.json")]}  # a type that the name tells
    assert measure(recorder, tmp_path, "torchserve", [named], "-m", "m").code == 0
    assert recorder[1][-1][1] == "application/json"


def test_an_answer_that_is_an_error_ends_the_run(recorder: Recorder, tmp_path: Path) -> None:
    steps = [{"payload": [{"a": 1}]}, {"payload": [{"a": "fail"}]}]
    done = measure(recorder, tmp_path, "http", steps, "--endpoint", "/any/path")
    assert done.code == 99
    assert "Thread [0] had error: " in done.err
    assert {path for path, _, _ in recorder[1]} == {"/any/path"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--service-kind", "http", "--endpoint", "a"), "--input-data should be provided with a json file"),
        (("--service-kind", "torchserve", "-m", "m"), "--input-data should be provided with a json file"),
        (("--service-kind", "kserve_v1", "-m", "m", "-i", "grpc"), "is asked over HTTP: leave out -i grpc."),
    ],
)
def test_a_service_says_what_it_lacks(words: tuple[str, ...], message: str) -> None:
    done = alipes("perf_analyzer", *words)
    assert done.code in (3, 99)
    assert message in done.err

"""The tables of the reference pages say what the code says, row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import grpc
import pytest
from alipes import _core, errors
from alipes.quickstart import digits
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from support.server import ServerProcess

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def tables(page: str) -> list[list[list[str]]]:
    """The tables of a reference page: rows of cells, without the heading; code alone in a cell loses its marks."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[[_cell(cell) for cell in row[1:-1].split("|")] for row in one.splitlines()[2:]] for one in found]


def _cell(text: str) -> str:
    code = re.fullmatch(r" *`([^`]*)` *", text)
    return code[1] if code else text.strip()


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., ServerProcess]) -> Iterator[ServerProcess]:
    """A server with the digit model."""
    yield serve_module(digits.REPOSITORY, "--allow-client-shm=true")


def test_errors_are_those_of_the_code() -> None:
    rows, *_ = tables("errors.md")
    codes = _core.error_codes()
    assert [tuple(row) for row in rows] == [
        (row.name, str(row.http_status), f"{row.grpc_code} {row.grpc_name}", row.exception, row.retry) for row in codes
    ]
    for row in codes:
        assert grpc.StatusCode[row.grpc_name].value[0] == row.grpc_code
        assert issubclass(getattr(errors, row.exception), errors.InferError)


def test_the_names_for_python_models_are_those_of_the_module() -> None:
    from alipes.worker.triton import triton_python_backend_utils

    rows = tables("python-backend.md")[2]
    assert sorted(row[0] for row in rows) == sorted(triton_python_backend_utils.__all__)
    for name, what in rows:
        offered = getattr(triton_python_backend_utils, name)
        for method in re.findall(r"`([a-z_]+)\(", what):
            assert not isinstance(offered, type) or hasattr(offered, method), f"{name}.{method}"


def test_each_code_is_explained() -> None:
    codes, explained, *_ = tables("errors.md")
    assert [row[0] for row in explained] == [row[0] for row in codes]


def _status(server: ServerProcess, method: str, path: str) -> int:
    """The status of an answer; 404 and 501 only for a path that is unknown, not for what its model lacks."""
    connection = HTTPConnection(server.http, timeout=30)
    try:
        path = path.format(model="digits", version="1", region="none", sequence="7")
        connection.request(method, path, b"{}" if method == "POST" else None, {"Accept": "text/html"})
        response = connection.getresponse()
        text = response.read()
        return 200 if b"Unable to find" in text or b"has no states" in text else response.status
    finally:
        connection.close()


def test_each_route_exists_under_its_method(server: ServerProcess) -> None:
    routes = [*tables("http.md")[0], *tables("v1.md")[0]]
    for method, path, _ in routes:
        assert _status(server, method, path) not in {404, 405, 501}, path
    # The page for browsers does not exist under any other method, as in Triton.
    offered = {(method, path) for method, path, _ in routes if path != "/"}
    for method, path in {(method, path) for method in ("PUT", "GET") for _, path in offered} - offered:
        assert _status(server, method, path) == 405, path


def test_the_methods_are_those_of_the_proto_files() -> None:
    files = FileDescriptorSet.FromString(_core.descriptor_set()).file
    declared = {
        f"{file.package}.{service.name}/{method.name}"
        for file in files
        for service in file.service
        for method in service.method
    }
    listed = [row[0] for row in tables("grpc.md")[0]]
    assert sorted(listed) == sorted(declared)


def test_each_method_is_offered(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        for method, _ in tables("grpc.md")[0]:
            assert _call(channel, method)[0] is not grpc.StatusCode.UNIMPLEMENTED, method


def _call(channel: grpc.Channel, method: str) -> tuple[grpc.StatusCode, str]:
    """Status and text of a call with an empty message, as far as its first response."""
    call = channel.unary_stream(f"/{method}")(b"", timeout=30)
    try:
        next(call, None)
        call.cancel()
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def _exposition(server: ServerProcess) -> str:
    connection = HTTPConnection(server.metrics, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def _families(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)


def test_further_metrics_appear_with_their_settings(serve: Callable[..., ServerProcess]) -> None:
    always, _, _, more, cache, *_ = tables("metrics.md")
    settings = ("summary_latencies=true", "histogram_latencies=true")
    flags = [f"--metrics-config={setting}" for setting in settings]
    server = serve(digits.REPOSITORY, "--cache-config=local,size=1000", *flags)
    wanted = {(name, kind) for name, kind, *_ in always + cache + more}
    assert set(_families(_exposition(server))) == wanted


def test_the_metrics_are_those_that_are_exposed(server: ServerProcess) -> None:
    text = _exposition(server)
    exposed = _families(text)
    rows, *_ = tables("metrics.md")
    assert [(name, kind) for name, kind, *_ in rows] == exposed
    reasons = set(re.findall(r'reason="(\w+)"', text))
    assert reasons == set(re.findall(r"`([A-Z]+)`", {row[0]: row[3] for row in rows}["nv_inference_request_failure"]))

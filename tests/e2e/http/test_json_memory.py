"""What JSON becomes is charged before there is memory for it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.models import add_model
from support.server import ServerProcess

pytestmark = pytest.mark.alone

INFLIGHT_BYTES = 96 << 20
INFER = "/v2/models/double/infer"

# The allocator gives freed memory back at once, not some time later: what is measured is then what is in use.
AT_ONCE = {"MIMALLOC_PURGE_DELAY": "0"}


@pytest.fixture
def server(repository: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_model(repository, "double")
    return serve(repository, f"--max-inflight-bytes={INFLIGHT_BYTES}", environment=AT_ONCE)


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    yield connection
    connection.close()


def numbers(count: int) -> str:
    """A tensor of 8 bytes for each 2 bytes of text."""
    return f'{{"name": "X", "datatype": "FP64", "shape": [1, {count}], "data": [{",".join("1" * count)}]}}'


def strings(count: int) -> str:
    """A tensor of 4 bytes for each 3 bytes of text."""
    texts = ",".join(['""'] * count)
    return f'{{"name": "X", "datatype": "BYTES", "shape": [1, {count}], "data": [{texts}]}}'


def parameter(count: int) -> str:
    """A text that is copied; the brackets fit those around the inputs."""
    tensor = '{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1]}'
    return f'{tensor}], "parameters": {{"a": "{"x" * count}"}}, "rest": ['


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had since :func:`forget_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


@pytest.mark.parametrize(
    "inputs",  # made by the test: hundreds of megabytes are nothing to collect
    [lambda: ", ".join([numbers(7_000_000)] * 4), lambda: strings(20_000_000), lambda: parameter(60_000_000)],
    ids=["numbers", "strings", "parameters"],
)
def test_text_that_becomes_more_than_there_is_is_refused_before(
    server: ServerProcess, connection: http.client.HTTPConnection, inputs: Callable[[], str]
) -> None:
    pid = server.process.pid
    assert ask(connection, numbers(2))[0] == 400  # of another datatype than the model's
    before = psutil.Process(pid).memory_info().rss
    forget_peak(pid)
    status, error = ask(connection, inputs())
    assert (status, "does not fit beside the requests and answers in flight" in error) == (503, True), error
    assert peak_bytes(pid) - before < INFLIGHT_BYTES + (16 << 20)
    # Nothing of it is counted any more.
    status, error = ask(connection, numbers(7_000_000))
    assert (status, "datatype" in error or "data-type" in error) == (400, True), error


def ask(connection: http.client.HTTPConnection, inputs: str) -> tuple[int, str]:
    connection.request("POST", INFER, f'{{"inputs": [{inputs}]}}')
    answer = connection.getresponse()
    return answer.status, str(json.loads(answer.read())["error"])

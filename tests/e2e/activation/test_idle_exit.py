"""Servers that end once nobody asks for anything, and lose no request by it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import grpc
import numpy as np
import pytest
from alipes.client import Client
from support.models import add_model, busy, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]
Activate = Callable[..., ServerProcess]

STEPS = 6_000
"""About a second of work."""
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2.0]}]})


@pytest.fixture
def model(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


@pytest.fixture
def activate() -> Iterator[Activate]:
    """Starts what holds the ports of servers; all of it is gone afterwards."""
    started: list[ServerProcess] = []

    def start(repository: Path, *flags: str) -> ServerProcess:
        holder = ServerProcess(repository, *flags, command="activate")
        started.append(holder)
        return holder

    try:
        yield start
    finally:
        for holder in started:
            holder.kill()


def infer_once(address: str) -> list[float]:
    """The answer on a connection of its own."""
    host, port = address.rsplit(":", 1)
    with closing(HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
        connection.request("POST", "/v2/models/times/infer", BODY, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    assert response.status == 200, answer
    return list(answer["outputs"][0]["data"])


def ends(holder: ServerProcess) -> int:
    """How often the server has ended."""
    return holder.output.count("the server has ended")


def await_end(holder: ServerProcess, before: int) -> None:
    """Returns once the server has ended more often than before."""
    until(lambda: ends(holder) > before)


def child_of(holder: ServerProcess) -> int:
    """The process of the server."""
    children = Path(f"/proc/{holder.process.pid}/task/{holder.process.pid}/children")
    until(lambda: children.read_text().split())
    return int(children.read_text().split()[0])


def is_gone(process: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return True


def test_an_idle_server_ends_with_exit_code_0(model: Path, serve: Serve) -> None:
    server = serve(model, "--idle-exit=0.3")
    assert infer_once(server.http) == [3.0, 4.0]
    assert server.wait() == 0
    assert "No client asks for anything: the server ends." in server.output


def test_requests_and_open_questions_keep_a_server(repository: Path, serve: Serve) -> None:
    add_model(repository, "busy", busy())
    server = serve(repository, "--idle-exit=0.2", "--execution-threads=measured")
    with Client(server.grpc) as client:
        outputs = client.infer("busy", {"STEPS": np.array([STEPS])})
    assert outputs
    assert server.wait() == 0


def test_reading_metrics_keeps_no_server(model: Path, serve: Serve) -> None:
    server = serve(model, "--idle-exit=0.5")
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.02):
            try:
                urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S).close()
            except OSError:
                return

    reader = threading.Thread(target=read)
    reader.start()
    assert server.wait() == 0
    ended.set()
    reader.join()


@pytest.mark.parametrize("rounds", [2, pytest.param(40, marks=pytest.mark.proof)])
def test_no_request_is_lost_over_idle_exits(rounds: int, model: Path, activate: Activate) -> None:
    holder = activate(model, "--idle-exit=0.1")
    failures: list[str] = []
    answers: list[list[float]] = []

    def over_http() -> None:
        answers.append(infer_once(holder.http))

    def over_grpc() -> None:
        with Client(holder.grpc) as client:
            found = client.infer("times", {"X": np.array([[1.5, 2.0]], np.float32)})
        answers.extend(found["Y"].tolist())

    def several(ask: Callable[[], None], pauses: list[float]) -> None:
        for pause_s in pauses:
            try:
                ask()
            except Exception as error:
                failures.append(repr(error))
            time.sleep(pause_s)  # around the moment at which the server may end

    for number in range(rounds):
        before = ends(holder)
        pauses = [(0.02 * place + 0.005 * number) % 0.13 for place in range(12)]
        threads = [threading.Thread(target=several, args=(ask, pauses)) for ask in (over_http, over_grpc)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await_end(holder, before)
    assert failures == []
    assert answers == [[3.0, 4.0]] * (2 * 12 * rounds)
    assert holder.stop() == 0


def test_a_client_that_keeps_its_connection_is_served_by_each_server(model: Path, activate: Activate) -> None:
    holder = activate(model, "--idle-exit=0.2")
    array = np.array([[1.5, 2.0]], np.float32)
    with Client(holder.http) as over_http, Client(holder.grpc) as over_grpc:
        for number in range(3):
            for client in (over_http, over_grpc):
                assert client.infer("times", {"X": array})["Y"].tolist() == [[3.0, 4.0]]
            await_end(holder, number)
    assert holder.stop() == 0


def test_a_server_that_fails_at_its_start_ends_those_who_wait(repository: Path, activate: Activate) -> None:
    (repository / "broken" / "1").mkdir(parents=True)
    (repository / "broken" / "1" / "model.onnx").write_bytes(b"no model")
    holder = activate(repository, "--idle-exit=5", "--exit-on-error=true")
    connection = HTTPConnection(*_place(holder.http), timeout=TIMEOUT_S)
    with closing(connection):
        connection.request("GET", "/v2/health/ready")
        response = connection.getresponse()
        text = json.loads(response.read())["error"]
    assert response.status == 503
    assert text.startswith("the server ended with exit code 1 while it started")
    holder.wait_for_output(r"while it started: .* waiting connections were ended, and the next try is in 1 s")
    channel = grpc.insecure_channel(holder.grpc)
    with closing(channel), pytest.raises(grpc.RpcError) as failure:
        channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=TIMEOUT_S)
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    holder.wait_for_output(r"the next try is in 2 s")
    assert holder.stop() == 0


def test_a_server_that_is_killed_is_started_again(model: Path, activate: Activate) -> None:
    holder = activate(model, "--idle-exit=60")
    assert infer_once(holder.http) == [3.0, 4.0]
    holder.wait_for_output("the server is ready")
    os.kill(child_of(holder), signal.SIGKILL)
    holder.wait_for_output("the server ended by SIGKILL: the next connection starts it again")
    assert infer_once(holder.http) == [3.0, 4.0]
    assert holder.stop() == 0


def test_signals_are_passed_on_and_nothing_is_left(model: Path, activate: Activate) -> None:
    holder = activate(model, "--idle-exit=60")
    address = holder.http
    assert infer_once(address) == [3.0, 4.0]
    server = child_of(holder)
    holder.signal(signal.SIGHUP)
    holder.wait_for_output("certificates and files are opened again")
    assert holder.stop() == 0
    assert "Signal (15) Received." in holder.output
    assert is_gone(server)
    with pytest.raises(ConnectionRefusedError), socket.create_connection(_place(address)):
        pass


def test_the_server_ends_with_what_holds_its_ports(model: Path, activate: Activate) -> None:
    holder = activate(model, "--idle-exit=60")
    assert infer_once(holder.http) == [3.0, 4.0]
    server = child_of(holder)
    holder.process.kill()
    until(lambda: is_gone(server))


def test_sockets_of_unix_are_held_and_removed(model: Path, tmp_path: Path, activate: Activate) -> None:
    path = tmp_path / "http.sock"
    holder = activate(model, "--idle-exit=0.2", f"--http-address=unix:{path}", "--allow-grpc=false")
    holder.wait_for_output("http waits for connections at unix:")
    for number in range(2):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(path))
            client.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        await_end(holder, number)
    assert path.is_socket()
    assert holder.stop() == 0
    assert not path.exists()


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="systemd is not installed")
def test_systemd_starts_the_server_with_its_socket(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    words = [sys.executable, "-m", "alipes", "serve", str(model), "--idle-exit=0.3", f"--http-port={port}"]
    command = ["systemd-socket-activate", f"--listen=127.0.0.1:{port}", "-E", "PATH", *words, "--allow-grpc=false"]
    with subprocess.Popen([*command, "--metrics-port=0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert re.search("Listening on", next(lines))
        assert infer_once(f"127.0.0.1:{port}") == [3.0, 4.0]
        output = "".join(lines)
    assert process.returncode == 0
    assert f"Started HTTPService at 127.0.0.1:{port}" in output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["models"], "write the command line of a server behind --"),
        (["serve"], "--model-repository must be specified"),
        (["serve", "models", "--idle-exits=3"], "mend the command line of the server"),
    ],
)
def test_a_wrong_command_line_holds_nothing(words: list[str], text: str) -> None:
    command = [sys.executable, "-m", "alipes", "activate", "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 2
    assert text in " ".join(done.stderr.split())


def test_a_port_in_use_is_reported_at_once(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ["serve", str(model), "--http-address=127.0.0.1", f"--http-port={port}"]
        command = [sys.executable, "-m", "alipes", "activate", "--", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 1
    assert f"cannot listen on '127.0.0.1:{port}' for http: Address already in use" in " ".join(done.stderr.split())


def _place(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)

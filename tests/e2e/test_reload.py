"""SIGHUP: files are opened again while the server serves on, unless its terminal has gone."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.certificates import Authority, encrypted
from support.endpoints import HttpEndpoint
from support.models import add_model
from support.notes import Notes
from support.python_models import WHO, add_python_model
from support.server import ServerProcess
from support.trace_files import heads, read
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

RELOADED = r"Signal \(1\) Received: certificates and files are opened again"

# Makes the terminal at standard input that of the program, which it then becomes; with or without SIGHUP ignored.
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# The tests themselves may run under nohup.
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""

HELD = """
class TritonPythonModel:
    def execute(self, requests):
        note("running")
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""


def live(address: str) -> int:
    host, port = address.split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
        connection.request("GET", "/v2/health/live")
        return connection.getresponse().status


def test_the_log_goes_on_in_a_new_file(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double")
    file, old = tmp_path / "server.log", tmp_path / "server.log.1"
    with ServerProcess(tmp_path / "models", f"--log-file={file}") as server:
        until(lambda: file.exists() and "Started Metrics Service" in file.read_text())
        file.rename(old)
        server.signal(signal.SIGHUP)
        until(lambda: file.exists() and re.search(RELOADED, file.read_text()))
        assert server.stop() == 0
    assert "Started HTTPService" in old.read_text() and "Received" not in old.read_text()
    assert "Signal (15) Received." in file.read_text()


def test_a_log_without_a_place_goes_on_in_its_old_file(tmp_path: Path) -> None:
    add_model(tmp_path / "models", "double")
    folder, moved = tmp_path / "logs", tmp_path / "old"
    folder.mkdir()
    with ServerProcess(tmp_path / "models", f"--log-file={folder / 'log'}") as server:
        until(lambda: (folder / "log").exists() and "Started Metrics Service" in (folder / "log").read_text())
        folder.rename(moved)
        server.signal(signal.SIGHUP)
        until(lambda: "the log goes on in its old file: " in (moved / "log").read_text())
        assert server.stop() == 0
    assert "Signal (15) Received." in (moved / "log").read_text()


def test_certificates_are_read_again_on_request(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double")
    (tmp_path / "certificates").mkdir()
    authority = Authority(tmp_path / "certificates")
    files = {name: authority.files(name) for name in ("http", "grpc", "metrics")}
    flags = [flag for name, file in files.items() for flag in encrypted(name, file)]
    server = serve(tmp_path / "models", *flags, "--ssl-reload-secs=0")
    files["http"].write(authority.issue())
    files["grpc"].certificate.write_text("no certificate")
    server.signal(signal.SIGHUP)
    for line in (
        "the HTTP certificate '.*' was read again",
        "the gRPC certificate stays as it is, since the new one cannot be used",
        "the metrics certificate '.*' was read again",
        RELOADED,
    ):
        server.wait_for_output(line)
    assert server.stop() == 0


def test_traces_go_on_in_a_new_file(repository: Path, tmp_path: Path, serve: Serve) -> None:
    add_python_model(repository, "echo")
    file, old = tmp_path / "trace.json", tmp_path / "trace.old"
    settings = (f"triton,file={file}", "level=TIMESTAMPS", "rate=1")
    server = serve(repository, *(f"--trace-config={setting}" for setting in settings))

    def trace(request_id: str) -> None:
        """Traces a request, and has what is traced written: it is when the settings are changed."""
        with HttpEndpoint(server) as endpoint:
            endpoint.ask("echo", {"X": [1]}, request_id=request_id)
        with closing(http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)) as connection:
            connection.request("POST", "/v2/trace/setting", json.dumps({"trace_rate": "1"}))
            with connection.getresponse() as response:
                assert response.status == 200

    trace("1")
    until(file.exists)
    # Where nobody has moved the file, it goes on: nothing of it is lost.
    server.signal(signal.SIGHUP)
    server.wait_for_output(RELOADED)
    trace("2")
    until(lambda: '"2"' in file.read_text())
    file.rename(old)
    server.signal(signal.SIGHUP)
    until(lambda: old.read_text().endswith("]"))
    trace("3")
    assert server.stop() == 0
    assert [[head["request_id"] for head in heads(read(one))] for one in (old, file)] == [["1", "2"], ["3"]]


def test_workers_leave_the_signal_to_the_server(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "who", WHO, signature="X: INT32[-1] -> PID: INT64[1]")
    server = serve(repository)

    def who() -> object:
        with HttpEndpoint(server) as endpoint:
            return endpoint.ask("who", {"X": [1]})

    before = who()
    os.killpg(server.process.pid, signal.SIGHUP)
    server.wait_for_output(RELOADED)
    assert who() == before
    assert server.stop() == 0


def test_a_stop_is_not_hurried_by_a_reload(tmp_path: Path, serve: Serve) -> None:
    notes = Notes(tmp_path / "notes")
    add_python_model(tmp_path / "models", "held", HELD)
    server = serve(tmp_path / "models", "--exit-timeout-secs=600", environment=notes.environment)
    host, port = server.http.split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
        body = {"inputs": [{"name": "X", "shape": [1], "datatype": "INT32", "data": [7]}]}
        connection.request("POST", "/v2/models/held/infer", json.dumps(body))
        notes.read("running")
        server.signal()
        server.wait_for_output("Waiting for in-flight requests to complete.")
        server.signal(signal.SIGHUP)
        server.wait_for_output(RELOADED)
        notes.write("go")
        with connection.getresponse() as response:
            assert response.status == 200
    assert server.wait() == 0


@pytest.mark.parametrize("how", ["plain", "nohup"])
def test_a_server_ends_with_its_terminal_except_under_nohup(tmp_path: Path, how: str) -> None:
    add_model(tmp_path / "models", "double")
    flags = [f"--{name}-{what}" for name in ("http", "grpc") for what in ("port=0", "address=127.0.0.1")]
    command = ["-m", "alipes", "serve", str(tmp_path / "models"), *flags, "--metrics-port=0"]
    ours, theirs = pty.openpty()
    log = tmp_path / "log"
    with log.open("w") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, how, *command],
            stdin=theirs,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    os.close(theirs)
    try:
        until(lambda: "Started Metrics Service" in log.read_text(), "it did not start")
        address = re.search(r'Started HTTPService at ([^"]+)"', log.read_text())
        assert address
        os.close(ours)
        if how == "nohup":
            until(lambda: re.search(RELOADED, log.read_text()), "it did not see the signal")
            assert live(address[1]) == 200
            process.terminate()
        assert process.wait(TIMEOUT_S) == 0
        assert "Signal (15) Received." in log.read_text()
    finally:
        process.kill()
        process.wait()

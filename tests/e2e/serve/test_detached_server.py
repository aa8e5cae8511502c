"""Servers that outlive the process which started them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from alipes.errors import ServeError, ServeTimeout
from alipes.local_ports import resolve
from alipes.serve import attach, launch
from support.containers import LOOPBACK, stand_in
from support.models import add_model, times
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[Path]:
    """Where a handle may be; its server is gone afterwards."""
    path = tmp_path / "server.json"
    yield path
    with contextlib.suppress(ServeError):
        attach(path).stop()


def ask(address: str, path: str) -> int:
    with urlopen(f"http://{address}{path}", timeout=TIMEOUT_S) as response:
        status: int = response.status
        return status


def test_a_detached_server_is_found_by_its_handle(models: Path, handle: Path) -> None:
    script = "import sys\nfrom alipes.serve import launch\nlaunch(sys.argv[1], sys.argv[2], server_args=sys.argv[3:])"
    subprocess.run([sys.executable, "-c", script, str(models), str(handle), *LOOPBACK], check=True, timeout=TIMEOUT_S)
    with attach(handle) as server:
        assert server.status() == "ready"
        server.wait(timeout=TIMEOUT_S)
        assert resolve("localhost:8001") == server.grpc
        assert ask(resolve("localhost:8000"), "/v2/models/times/ready") == 200
        assert "Started HTTPService" in server.log
    assert resolve("localhost:8001") == "localhost:8001"
    assert server.status() == "ready"
    server.stop()
    assert server.status() == "ended"
    assert not handle.exists()
    server.stop()


def test_a_handle_whose_server_runs_is_not_used_for_another(models: Path, handle: Path) -> None:
    with launch(models, handle, server_args=LOOPBACK) as server:
        with pytest.raises(ServeError, match="still runs"):
            launch(models, handle, server_args=LOOPBACK)
        pid = server.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: server.status() == "ended")
        with pytest.raises(ServeError, match="it is gone"):
            server.wait()
    with launch(models, handle, server_args=LOOPBACK) as another:
        assert another.pid != pid
        assert another.status() == "ready"


def test_a_server_that_does_not_become_ready_leaves_nothing(models: Path, handle: Path, tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="no-such-flag"):
        launch(models, handle, server_args=[*LOOPBACK, "--no-such-flag"])
    assert not handle.exists()


def test_a_server_that_takes_too_long_is_ended(
    models: Path, handle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    stand_in(
        programs, "apptainer", f"echo $$ > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/pid; exec tail -f /dev/null"
    )
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
    (tmp_path / "image.sif").touch()
    with pytest.raises(ServeTimeout):
        launch(models, handle, tmp_path / "image.sif", timeout=2)
    assert not handle.exists()
    if (tmp_path / "pid").exists():
        assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_launch_is_tried_again_where_a_port_is_in_use(
    models: Path, handle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    port_in_use = "echo \"Socket '0.0.0.0:8001' already in use\"; exit 1"
    stand_in(programs, "apptainer", f"[ -e {programs}/again ] || {{ touch {programs}/again; {port_in_use}; }}")
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
    (tmp_path / "image.sif").touch()
    with launch(models, handle, tmp_path / "image.sif", server_args=LOOPBACK) as server:
        assert server.status() == "ready"
    # What started it may be gone by then.
    monkeypatch.undo()
    server.stop()
    assert server.status() == "ended"


def test_a_server_of_another_machine_is_stopped_there(models: Path, handle: Path) -> None:
    with launch(models, handle, server_args=LOOPBACK) as server:
        text = handle.read_text()
        handle.write_text(text.replace(f'"host": "{socket.gethostname()}"', '"host": "node17"'))
        with attach(handle) as elsewhere, pytest.raises(ServeError, match="runs on node17: stop it there"):
            elsewhere.stop()
        handle.write_text(text)
        assert server.status() == "ready"


def test_the_command_line_launches_tells_and_stops(models: Path, handle: Path) -> None:
    def type_(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "alipes", *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        return done.returncode, done.stdout, done.stderr

    status, printed, _ = type_("launch", str(models), "--handle", str(handle), *LOOPBACK)
    assert status == 0
    assert "is ready" in printed
    status, again, _ = type_("status", str(handle))
    assert (status, again.startswith(printed)) == (0, True)
    assert "version" in again.removeprefix(printed)
    with attach(handle) as server:
        assert ask(server.http, "/v2/health/ready") == 200
    status, printed, _ = type_("stop", str(handle))
    assert (status, printed.endswith("has ended\n")) == (0, True)
    status, printed, error = type_("status", str(handle))
    assert (status, printed) == (1, "")
    assert error.startswith("error: there is no handle")

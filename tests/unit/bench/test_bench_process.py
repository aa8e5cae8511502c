"""What the bench starts ends with it, children included, and says what it printed when it fails."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.servers import process
from bench.servers.process import Process, StartFailed

WITH_CHILD = """\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "WORK", tmp_path)


def wait_until_ended(pid: int) -> None:
    """Returns once a process that was killed is gone; nobody waits for it, so an entry without a process may remain."""
    deadline = time.monotonic() + 30
    while psutil.pid_exists(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


def test_children_end_with_their_server() -> None:
    with Process("parent", [sys.executable, "-c", WITH_CHILD]) as server:
        child = int(server.first_line())
        assert psutil.pid_exists(child)
        assert server.resident_bytes() > 0
    assert not psutil.pid_exists(server.pid)
    wait_until_ended(child)


def test_a_server_that_ends_at_once_is_reported_with_what_it_printed() -> None:
    command = [sys.executable, "-c", "print('no such model'); raise SystemExit(4)"]
    with (
        Process("short", command) as server,
        pytest.raises(StartFailed, match=r"short ended with status 4:\nno such model"),
    ):
        server.wait_until(lambda: False)


def test_a_server_that_never_becomes_ready_fails_to_start() -> None:
    with (
        Process("silent", [sys.executable, "-c", "import time; time.sleep(60)"]) as server,
        pytest.raises(StartFailed, match="silent is not ready"),
    ):
        server.wait_until(lambda: False, timeout_s=0.1)

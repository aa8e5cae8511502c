"""A server of an engine announces itself, is started again where it ends, and goes with its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from alipes import Client
from alipes.batch.engine_servers import EngineServers
from alipes.batch.executors.server_tasks import server_command
from alipes.batch.folder import RunFolder
from alipes.batch.launch import LaunchFolder
from alipes.errors import BatchError
from alipes.progress import task
from support.models import add_model
from support.waiting import until


class ProcessTasks:
    """An engine that is nothing but processes."""

    def __init__(self, launch: LaunchFolder) -> None:
        self.launch = launch
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def begin(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            command = [*server_command(self.launch, number), "--host", "127.0.0.1", "--parent", str(os.getpid())]
            self.processes[number] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def ended(self) -> list[int]:
        return [number for number, process in self.processes.items() if process.poll() is not None]

    def stop(self) -> None:
        for process in self.processes.values():
            process.wait()


@pytest.fixture
def launch(repository: Path, tmp_path: Path) -> LaunchFolder:
    add_model(repository, "double", config="max_batch_size: 8\n")
    run = RunFolder(tmp_path / "out")
    run.prepare()
    return LaunchFolder.make(run, str(repository), {})


@pytest.fixture
def tasks(launch: LaunchFolder) -> Iterator[ProcessTasks]:
    tasks = ProcessTasks(launch)
    yield tasks
    for process in tasks.processes.values():
        process.kill()
        process.wait()


def is_answered(address: str) -> bool:
    with Client(address) as client:
        return bool((client.infer("double", [[1.0, 2.0]]) == [[2.0, 4.0]]).all())


@pytest.mark.slow("starts two servers, and two of them again")
def test_lost_servers_are_elsewhere_soon(launch: LaunchFolder, tasks: ProcessTasks) -> None:
    up = EngineServers(launch, tasks, 2)
    with task("test", show=False) as line:
        up.start(line)
    first, second = up.addresses
    assert is_answered(first)
    assert is_answered(second)
    (server,) = psutil.Process(tasks.processes[0].pid).children()
    server.kill()
    until(up.look)
    assert up.addresses[0] != first
    assert up.addresses[1] == second
    assert is_answered(up.addresses[0])
    tasks.processes[1].kill()  # what watches over the server, which goes with it
    until(up.look)
    assert up.addresses[1] != second
    assert is_answered(up.addresses[1])
    up.stop()
    assert [process.returncode for process in tasks.processes.values()] == [0, 0]


def test_a_server_that_cannot_start_says_why(launch: LaunchFolder, repository: Path, tasks: ProcessTasks) -> None:
    (repository / "double" / "config.pbtxt").write_text("max_batch_sise: 8")
    up = EngineServers(launch, tasks, 1)
    with (
        task("test", show=False) as line,
        pytest.raises(BatchError, match=r"server 0 on .* cannot go on: .*batch_sise"),
    ):
        up.start(line)
    up.stop()
    assert tasks.processes[0].returncode == 1


def test_a_server_that_gets_sigterm_can_be_started_again(launch: LaunchFolder, tasks: ProcessTasks) -> None:
    tasks.begin([0])
    until(lambda: any(report.address for report in launch.reports()))
    process = tasks.processes[0]
    (server,) = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 85
    assert not server.is_running()


def test_a_server_whose_engine_is_gone_ends(launch: LaunchFolder, tmp_path: Path) -> None:
    program = f"""
import subprocess, os
from alipes.batch.executors.server_tasks import server_command
from alipes.batch.launch import LaunchFolder
command = [*server_command(LaunchFolder({str(launch.path)!r}), 0), "--host", "127.0.0.1", "--parent", str(os.getpid())]
print(subprocess.Popen(command, stdout=subprocess.DEVNULL).pid, flush=True)
input()
"""
    engine = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with engine:
        assert engine.stdout is not None
        watcher = psutil.Process(int(engine.stdout.readline()))
        until(lambda: any(report.address for report in launch.reports()))
        engine.kill()
    psutil.wait_procs([watcher], timeout=60)
    assert not watcher.is_running() or watcher.status() == psutil.STATUS_ZOMBIE

"""Servers of an engine find what they serve in a folder, and see there whether their run goes on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from alipes.batch import server_process
from alipes.batch.executors.server_tasks import client_options, server_options
from alipes.batch.executors.slurm_servers import servers_script
from alipes.batch.folder import RunFolder, WorkerReport
from alipes.batch.launch import LaunchFolder, ServerReport, remove_unused
from alipes.errors import ConfigError


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "out put")
    folder.prepare()
    return folder


@pytest.fixture
def launch(run: RunFolder) -> LaunchFolder:
    return LaunchFolder.make(run, "models", {"api_key": "secret"})


def test_what_is_served_is_read_as_it_was_written(launch: LaunchFolder) -> None:
    assert LaunchFolder(launch.path).recipe() == (str(Path.cwd() / "models"), {"api_key": "secret"})
    assert stat.S_IMODE((launch.path / "recipe.json").stat().st_mode) == 0o600


def test_a_bucket_is_no_folder(run: RunFolder) -> None:
    assert LaunchFolder.make(run, "s3://bucket/models", {}).recipe()[0] == "s3://bucket/models"


def test_options_of_this_process_alone_are_refused(run: RunFolder) -> None:
    with pytest.raises(ConfigError, match="servers elsewhere take texts and numbers"):
        LaunchFolder.make(run, "models", {"log_file": object()})


def test_announcements_are_read(launch: LaunchFolder) -> None:
    report = ServerReport(1, "grpc://a:1", "a", 7)
    launch.report(report)
    assert list(launch.reports()) == [report]


def test_a_server_goes_when_its_run_says_so(launch: LaunchFolder) -> None:
    signs = server_process._Signs(launch, None)
    assert not signs.are_gone()
    launch.end()
    assert signs.are_gone()


def test_a_server_goes_when_nothing_is_heard(
    run: RunFolder, launch: LaunchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1000.0
    monkeypatch.setattr(server_process.time, "monotonic", lambda: now_s)
    signs = server_process._Signs(launch, None)
    for wait_s, sign in ((100.0, launch.sign), (100.0, lambda: run.write_worker(WorkerReport(1, 0, "a", 7)))):
        now_s += wait_s
        sign()
        assert not signs.are_gone()
    now_s += 115.0
    assert not signs.are_gone()
    now_s += 6.0
    assert signs.are_gone()


def complete(run: RunFolder) -> RunFolder:
    run.success.touch()
    return run


def write_logs(launch: LaunchFolder, number: int, *texts: str) -> list[Path]:
    logs = []
    for text in texts:
        logs.append(launch.new_log(number))
        logs[-1].write_text(text)
    return logs


def test_nothing_of_servers_is_left_when_a_run_is_complete(run: RunFolder, launch: LaunchFolder) -> None:
    launch.report(ServerReport(0, "grpc://a:1", "a", 7))
    write_logs(launch, 0, "served")
    launch.output(0).touch()
    launch.end()
    assert remove_unused(complete(run)) == []
    assert not (run.path / "servers").exists()
    assert remove_unused(run) == []


def test_what_lost_servers_have_written_is_all_that_stays(run: RunFolder, launch: LaunchFolder) -> None:
    write_logs(launch, 0, "served")
    lost, _ = write_logs(launch, 1, "out of memory", "served")
    _, failed = write_logs(launch, 2, "", "no such model")
    launch.report(ServerReport(2, "", "a", 7, "no such model"))
    launch.output(0).write_text("nothing of interest")
    launch.output(1).write_text("Killed")
    launch.end()
    assert remove_unused(complete(run)) == [lost, launch.output(1), failed]
    assert {path for path in launch.path.iterdir() if path.suffix} == {lost, launch.output(1), failed}
    assert launch.has_ended()
    assert remove_unused(run) == []
    assert lost.read_text() == "out of memory"


def test_servers_of_another_start_stay_until_it_has_ended(run: RunFolder, launch: LaunchFolder) -> None:
    complete(run)
    assert remove_unused(run) == []
    assert launch.recipe()
    # Its start was killed, and the servers that outlived it have ended.
    long_ago_s = run.success.stat().st_mtime - 121
    os.utime(launch.path / "sign-of-life", (long_ago_s, long_ago_s))
    assert remove_unused(run) == []
    assert not launch.path.exists()


def test_options_of_servers_are_differ_from_those_of_clients() -> None:
    options = {"partition": "cpu", "server-partition": "gpu", "server_gres": "gpu:1"}
    assert client_options(options) == {"partition": "cpu"}
    assert server_options(options) == {"partition": "gpu", "gres": "gpu:1"}


def test_servers_are_tasks_of_an_array_job(launch: LaunchFolder) -> None:
    lines = servers_script(launch, [0, 3], {"partition": "gpu", "exclusive": ""}).splitlines()
    for line in ("--array=0,3", "--requeue", "--signal=B:TERM@60", "--partition=gpu", "--exclusive"):
        assert f"#SBATCH {line}" in lines
    (server,) = (line for line in lines if "server_process" in line)
    assert server.endswith(
        f"-m alipes.batch.server_process '{launch.path}' $SLURM_ARRAY_TASK_ID --host $SLURMD_NODENAME --parent $$ &"
    )

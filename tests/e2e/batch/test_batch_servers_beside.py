"""Servers that an engine starts beside the clients: killed in the middle, each row is there once, and none is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from alipes.batch.folder import RunFolder
from support.batch_runs import BatchProcess, RowsByPlace, add_files, await_held, rows_of
from support.dask_cluster import dask_cluster
from support.slurm import skip_without_slurm, slurm, slurm_answer
from support.waiting import until

SERVERS = 2
KILLED = pytest.mark.parametrize("killed", ["server", "watcher"])


def words_of(tmp_path: Path, repository: Path, *more: object) -> tuple[object, ...]:
    words = ("picky", tmp_path / "data", "-o", tmp_path / "out", "--repository", repository, "--servers", SERVERS)
    return (*words, "--server-option", "host=127.0.0.1", "--in-flight", 1, "--batch", 3, *more)


def run_with_a_kill(
    words: tuple[object, ...], notes: Path, killed: str, variables: dict[str, str] | None = None
) -> None:
    """Runs, and kills the server that holds a row, or the process that watches over it."""
    with BatchProcess(*words, notes=notes, variables=variables) as run:
        server = psutil.Process(await_held(notes))
        watcher = server.parent()
        assert watcher is not None
        os.kill(server.pid if killed == "server" else watcher.pid, signal.SIGKILL)
        psutil.wait_procs([server], timeout=30)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")


def check_none_is_left(out: Path) -> None:
    """The servers have gone with the run, and left nothing but what those have written that were killed."""
    until(lambda: not processes_of(out / "servers"), "a server is left", 60)
    files = [file for file in out.glob("servers/*/*") if file.name != "end"]
    assert {file.suffix for file in files} <= {".log", ".out"}
    assert any("successfully loaded 'picky'" in file.read_text() for file in files), "of the one that was killed"
    assert len({file.name.partition("-")[0] for file in files if file.suffix == ".log"}) == 1


def processes_of(folder: Path) -> list[int]:
    """The processes that watch over servers with their files in a folder."""
    found = psutil.process_iter(["pid", "cmdline"])
    return [one.pid for one in found if any(str(folder) in word for word in one.info["cmdline"] or ())]


@KILLED
@pytest.mark.proof
def test_slurm_runs_servers_beside_its_clients(
    repository: Path, tmp_path: Path, notes: Path, expected: RowsByPlace, killed: str
) -> None:
    skip_without_slurm()
    words = words_of(tmp_path, repository, "--executor", "slurm", "--executor-option", "server-mem=100M")
    with slurm(tmp_path) as variables:
        run_with_a_kill(words, notes, killed, variables)
        until(lambda: slurm_answer(variables, "squeue", "--noheader") == "", "a job is left")
    assert rows_of(tmp_path / "out") == expected
    check_none_is_left(tmp_path / "out")


@pytest.fixture
def cluster(tmp_path: Path, notes: Path) -> Iterator[str]:
    with dask_cluster(tmp_path, {"NOTES": str(notes)}) as address:
        yield address


@KILLED
@pytest.mark.proof
@pytest.mark.extra("dask")
def test_dask_runs_servers_beside_its_clients(
    repository: Path, cluster: str, tmp_path: Path, notes: Path, expected: RowsByPlace, killed: str
) -> None:
    words = words_of(tmp_path, repository, "--executor", "dask", "--executor-option", f"address={cluster}")
    run_with_a_kill(words, notes, killed)
    assert rows_of(tmp_path / "out") == expected
    check_none_is_left(tmp_path / "out")


@pytest.mark.proof
@pytest.mark.extra("dask")
def test_a_lost_worker_of_dask_takes_its_server_and_no_row_along(
    repository: Path, cluster: str, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    words = words_of(tmp_path, repository, "--executor", "dask", "--executor-option", f"address={cluster}")
    with BatchProcess(*words, notes=notes) as run:
        watcher = psutil.Process(await_held(notes)).parent()
        assert watcher is not None
        worker = watcher.parent()
        assert worker is not None
        worker.kill()
        (notes / "go").touch()
        done = run.wait()
    assert done.code == 0
    assert rows_of(tmp_path / "out") == expected
    check_none_is_left(tmp_path / "out")


@KILLED
@pytest.mark.proof
@pytest.mark.extra("ray")
def test_ray_runs_servers_beside_its_clients(
    repository: Path, tmp_path: Path, notes: Path, expected: RowsByPlace, killed: str
) -> None:
    words = words_of(tmp_path, repository, "--executor", "ray", "--executor-option", "server-num-cpus=0.5")
    run_with_a_kill(words, notes, killed)
    assert rows_of(tmp_path / "out") == expected
    check_none_is_left(tmp_path / "out")


@pytest.mark.proof
def test_a_server_that_slurm_cannot_start_is_one_message(
    repository: Path, tmp_path: Path, expected: RowsByPlace
) -> None:
    skip_without_slurm()
    (repository / "picky" / "config.pbtxt").write_text("max_batch_sise: 8")
    with (
        slurm(tmp_path) as variables,
        BatchProcess(*words_of(tmp_path, repository, "--executor", "slurm"), variables=variables) as run,
    ):
        done = run.wait()
        until(lambda: slurm_answer(variables, "squeue", "--noheader") == "", "a job is left")
    assert done.code == 1
    assert "cannot go on" in done.message
    assert "max_batch_size" in done.message
    assert any("max_batch_size" in log.read_text() for log in (tmp_path / "out").glob("servers/*/*.log"))
    assert not (tmp_path / "out" / "plan.json").exists()


def test_options_of_servers_need_servers(tmp_path: Path) -> None:
    from alipes import batch
    from alipes.errors import ConfigError

    add_files(tmp_path / "data", 1)
    with pytest.raises(ConfigError, match="server-gres is for servers that an executor such as slurm starts"):
        batch.run(
            "picky",
            tmp_path / "data",
            tmp_path / "out",
            url="localhost:1",
            executor="slurm",
            executor_options={"server-gres": "gpu:1"},
        )
    assert not RunFolder(tmp_path / "out").path.exists()

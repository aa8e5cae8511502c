"""The same run under Slurm, Dask and Ray: a client is killed in the middle, and each row is there once in the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.batch_runs import BatchProcess, RowsByPlace, await_held, clients_of, holder_of, rows_of
from support.dask_cluster import dask_cluster
from support.ray_cluster import VARIABLES, ray_cluster
from support.server import ServerProcess
from support.slurm import skip_without_slurm, slurm, slurm_answer


def words_of(tmp_path: Path, server: ServerProcess, *more: object) -> tuple[object, ...]:
    words = ("picky", tmp_path / "data", "-o", tmp_path / "out", "--url", server.grpc, "--clients", 2)
    return (*words, "--in-flight", 1, "--batch", 3, *more)


@pytest.mark.proof
def test_a_client_of_slurm_that_is_killed_is_submitted_again(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    skip_without_slurm()
    with slurm(tmp_path) as variables:
        words = words_of(tmp_path, server, "--executor", "slurm", "--executor-option", "partition=main")
        with BatchProcess(*words, variables=variables) as run:
            await_held(notes)
            for client in clients_of(tmp_path / "out"):
                if client.state == "runs":
                    os.kill(client.pid, signal.SIGKILL)
            (notes / "go").touch()
            done = run.wait()
        assert (done.code, done.err) == (0, "")
        assert rows_of(tmp_path / "out") == expected
        assert slurm_answer(variables, "squeue", "--noheader") == ""
        with BatchProcess(
            "picky",
            tmp_path / "data",
            "-o",
            tmp_path / "other",
            *("--url", server.grpc, "--executor", "slurm", "--executor-option", "partition=none"),
            variables=variables,
        ) as run:
            refused = run.wait()
        assert refused.code == 1
        assert "sbatch refuses: sbatch: error: invalid partition specified: none" in refused.message


@pytest.mark.proof
def test_a_run_on_slurm_that_is_interrupted_leaves_no_job(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    skip_without_slurm()
    with slurm(tmp_path) as variables:
        words = words_of(tmp_path, server, "--executor", "slurm")
        with BatchProcess(*words, variables=variables) as run:
            await_held(notes)
            run.process.send_signal(signal.SIGINT)
            assert run.wait().code == 130
        (notes / "go").touch()
        assert "R" not in slurm_answer(variables, "squeue", "--noheader", "--states", "R", "--format", "%t")
        with BatchProcess(*words, variables=variables) as run:
            assert run.wait().code == 0
    assert rows_of(tmp_path / "out") == expected


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    with dask_cluster(tmp_path) as address:
        yield address


@pytest.mark.proof
@pytest.mark.extra("dask")
def test_a_worker_of_dask_that_is_lost_costs_no_row(
    server: ServerProcess, cluster: str, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    words = words_of(tmp_path, server, "--executor", "dask", "--executor-option", f"address={cluster}")
    with BatchProcess(*words) as run:
        await_held(notes)
        holder = holder_of(tmp_path / "out")
        parent = psutil.Process(holder.pid).parent()
        assert parent is not None
        parent.kill()
        (notes / "go").touch()
        done = run.wait()
    assert done.code == 0
    assert rows_of(tmp_path / "out") == expected


@pytest.mark.proof
@pytest.mark.extra("dask")
def test_a_scheduler_of_dask_that_is_not_there_is_named(
    server: ServerProcess, tmp_path: Path, expected: RowsByPlace
) -> None:
    option = "address=tcp://127.0.0.1:1"
    with BatchProcess(*words_of(tmp_path, server, "--executor", "dask", "--executor-option", option)) as run:
        done = run.wait()
    assert done.code == 1
    assert "no scheduler of Dask answers at tcp://127.0.0.1:1" in done.message


@pytest.mark.proof
@pytest.mark.extra("ray")
def test_a_worker_of_ray_that_is_lost_costs_no_row(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    with BatchProcess(*words_of(tmp_path, server, "--executor", "ray")) as run:
        await_held(notes)
        holder = holder_of(tmp_path / "out")
        parent = psutil.Process(holder.pid).parent()
        assert parent is not None
        parent.kill()
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    assert rows_of(tmp_path / "out") == expected


@pytest.mark.proof
@pytest.mark.extra("ray")
def test_a_node_of_ray_that_leaves_costs_no_row(
    server: ServerProcess, tmp_path: Path, notes: Path, expected: RowsByPlace
) -> None:
    with ray_cluster(tmp_path) as address:
        words = words_of(tmp_path, server, "--executor", "ray", "--executor-option", f"address={address}")
        with BatchProcess(*words, variables=VARIABLES) as run:
            await_held(notes)
            holder = holder_of(tmp_path / "out")
            worker = psutil.Process(holder.pid).parent()
            assert worker is not None
            node = worker.parent()
            assert node is not None
            assert node.name() == "raylet"
            for process in (node, *node.children()):
                process.kill()
            (notes / "go").touch()
            done = run.wait()
    assert done.code == 0
    assert rows_of(tmp_path / "out") == expected


@pytest.mark.proof
@pytest.mark.extra("ray")
def test_a_cluster_of_ray_that_is_not_there_is_named(
    server: ServerProcess, tmp_path: Path, expected: RowsByPlace
) -> None:
    option = "address=127.0.0.1:1"
    with BatchProcess(*words_of(tmp_path, server, "--executor", "ray", "--executor-option", option)) as run:
        done = run.wait()
    assert done.code == 1
    assert "no cluster of Ray answers at 127.0.0.1:1" in done.message

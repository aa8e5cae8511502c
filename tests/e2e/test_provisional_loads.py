"""A configuration that is tried out goes away by itself when whoever tried it falls silent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes import Client, InferError
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import Traffic
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

KEEPS = """
import sys
import time
from alipes import Client

with Client(sys.argv[1]) as client:
    while True:
        client.load("double", config=sys.argv[2])
        print("kept", flush=True)
        time.sleep(0.3)
"""


def config(instances: int, revert_after_s: str | None = None) -> str:
    document: dict[str, object] = {
        "backend": "onnxruntime",
        "max_batch_size": 8,
        "instance_group": [{"count": instances, "kind": "KIND_CPU"}],
    }
    if revert_after_s is not None:
        document["parameters"] = {"load.revert_after_s": {"string_value": revert_after_s}}
    return json.dumps(document)


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_model(repository, "double", times())
    (repository / "double" / "config.pbtxt").write_text("max_batch_size: 8\ninstance_group { count: 1 }\n")
    return serve(repository, "--model-control-mode=explicit", "--load-model=double")


def instances(client: Client) -> int:
    return int(client.config("double")["instance_group"][0]["count"])


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_it_goes_back_when_its_tool_is_killed(server: ServerProcess, wire: str) -> None:
    address = f"{wire}://{getattr(server, wire)}"
    with Client(address) as client, Traffic(server, "double") as traffic:
        command = [sys.executable, "-c", KEEPS, address, config(3, "1")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
            assert tool.stdout is not None
            for _ in range(6):  # longer than a second
                assert tool.stdout.readline() == "kept\n"
                assert instances(client) == 3
            tool.send_signal(signal.SIGKILL)
            tool.wait(TIMEOUT_S)
        until(lambda: instances(client) == 1)
    assert traffic.answers
    assert traffic.failures == []
    server.wait_for_output("model 'double' goes back to its former configuration: no word for 1 s")


def test_it_goes_back_to_what_a_load_request_had_brought(server: ServerProcess) -> None:
    with Client(f"http://{server.http}") as client:
        client.load("double", config=config(2))
        client.load("double", config=config(4, "1"))
        assert instances(client) == 4
        until(lambda: instances(client) == 2)
        client.load("double", config=config(4, "60"))
        client.load("double")
        assert instances(client) == 2


def test_the_same_load_without_the_parameter_keeps_it(server: ServerProcess) -> None:
    with Client(f"http://{server.http}") as client:
        client.load("double", config=config(3, "1"))
        client.load("double", config=config(3))
        client.load("double", config=config(4, "1"))
        until(lambda: instances(client) == 3)


def test_seconds_that_are_none_are_refused_and_nothing_changes(server: ServerProcess) -> None:
    with Client(f"grpc://{server.grpc}") as client:
        for seconds in ("0", "soon", "86400"):
            with pytest.raises(InferError, match="from 1 to 3600 seconds"):
                client.load("double", config=config(3, seconds))
        assert instances(client) == 1

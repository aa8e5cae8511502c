"""`alipes advise` on running servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from alipes import Client, NotReady
from alipes.advise import Change, advise
from support.command import alipes
from support.exposition import samples
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import Traffic
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

MODEL = """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.01)
        inputs = [pb_utils.get_input_tensor_by_name(one, "X").as_numpy() for one in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", 2 * rows)]) for rows in inputs]
"""
CONFIG = """
backend: "python"
max_batch_size: 1
input { name: "X" data_type: TYPE_FP32 dims: 2 }
output { name: "Y" data_type: TYPE_FP32 dims: 2 }
instance_group { count: 1 kind: KIND_CPU }
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "slow" / "1").mkdir(parents=True)
    (folder / "slow" / "1" / "model.py").write_text(MODEL)
    (folder / "slow" / "config.pbtxt").write_text(CONFIG)
    add_model(folder, "double", times())
    return folder


@pytest.fixture
def server(models: Path, serve: Serve) -> ServerProcess:
    return serve(models, "--model-control-mode=explicit", "--load-model=slow", "--load-model=double")


SLEEPS = """
import time

import alipes


@alipes.model(instances=1)
def sleeps(x: float) -> float:
    time.sleep(0.02)
    return x
"""

BURNS = "print(flush=True)\nwhile True:\n    pass\n"


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """Programs that use every processor which nobody else wants."""
    command = ["nice", "-n", "19", sys.executable, "-c", BURNS]
    burning = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(os.cpu_count() or 1)]
    try:
        for one in burning:
            assert one.stdout is not None
            assert one.stdout.readline()
        yield
    finally:
        for one in burning:
            one.kill()
            one.communicate()


@contextmanager
def callers(server: ServerProcess, function: str, number: int) -> Iterator[None]:
    """Clients that call a function one time after the other."""
    over, begun = threading.Event(), threading.Barrier(number + 1)

    def call() -> None:
        with Client(server.http) as client:
            client.call(function, x=1.0)
            begun.wait(TIMEOUT_S)
            while not over.is_set():
                client.call(function, x=1.0)

    with ThreadPoolExecutor(number) as pool:
        calling = [pool.submit(call) for _ in range(number)]
        try:
            begun.wait(TIMEOUT_S)
            yield
        finally:
            over.set()
    for one in calling:
        one.result()


def test_a_sleeping_function_is_not_blamed_on_the_load_of_neighbours(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "app.py").write_text(SLEEPS)
    server = serve(tmp_path / "app.py")
    with busy_neighbours(), callers(server, "sleeps", 4):
        until(lambda: samples(server)["nv_cpu_utilization"] > 0.85)
        url = f"http://{server.metrics}/metrics"
        (finding,) = advise(f"http://{server.http}", seconds=1, metrics_url=url).findings
        done = alipes("advise", f"--url=http://{server.http}", "--seconds=1", f"--metrics-url={url}")
    assert (finding.stage, finding.change) == ("queue", Change("instances", 1, 2)), finding
    assert "  do:     add an instance (instances 2 instead of 1)" in done.out
    assert "the machine is full" not in done.out
    used = samples(server)
    assert used["alipes_processors"] >= 1
    (worker,) = (value for name, value in used.items() if name.startswith("alipes_worker_cpu_seconds_total{"))
    assert used["process_cpu_seconds_total"] > 0 < worker


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_a_queue_in_front_of_one_process_is_found(server: ServerProcess, wire: str) -> None:
    with Traffic(server, "slow", callers=4):
        advice = advise(f"{wire}://{getattr(server, wire)}", seconds=1, metrics_url=f"http://{server.metrics}/metrics")
    (finding,) = advice.findings
    (flow,) = advice.flows
    assert (finding.model, finding.stage) == ("slow", "queue")
    # How many of the callers wait at a time is the machine's affair; that some do is the finding.
    assert 0 < flow.busy <= 1 < flow.in_server
    assert flow.mean_batch == 1
    assert [row["model"] for row in advice.rows()] == ["slow"]


def test_without_traffic_there_is_no_advice(server: ServerProcess) -> None:
    done = alipes("advise", f"--url=http://{server.http}", "--seconds=0.1")
    assert (done.code, done.out) == (0, "no model was asked in 0.1 s: look while there is traffic\n")


@pytest.mark.slow("looks for some seconds")
def test_a_change_is_tried_and_goes_away(server: ServerProcess) -> None:
    with Traffic(server, "slow", callers=4) as traffic, Client(server.http) as client:
        # No metrics there: the processors' share is unknown, and the advice is an instance.
        words = ["advise", "slow", f"--url=http://{server.http}", "--seconds=1.5"]
        done = alipes(*words, "--metrics-url=http://127.0.0.1:1/metrics", "--try")
        assert client.config("slow")["instance_group"][0]["count"] == 1
    assert (done.code, done.err) == (0, "")
    assert "slow: queue" in done.out
    assert "(instances 2 instead of 1)" in done.out
    assert "tried: slow: with instances 2 instead of 1, " in done.out
    assert done.out.rstrip().endswith("it was taken back")
    assert traffic.failures == []


@pytest.mark.slow("looks for some seconds")
def test_a_change_that_helps_stays_if_wanted(server: ServerProcess) -> None:
    with Traffic(server, "slow", callers=4), Client(server.http) as client:
        words = ["advise", "slow", f"--url=http://{server.http}", "--seconds=1.5", "--metrics-url=http://127.0.0.1:1/m"]
        done = alipes(*words, "--try", "--keep", "--json")
        assert client.config("slow")["instance_group"][0]["count"] == 2
    assert json.loads(done.out)["tried"].endswith("it stays until the server ends or the model is loaded again")


@pytest.mark.slow("waits until the server goes back by itself")
def test_a_server_goes_back_when_the_tool_is_killed(server: ServerProcess) -> None:
    command = [
        sys.executable,
        "-m",
        "alipes",
        "advise",
        "slow",
        f"--url=http://{server.http}",
        "--seconds=1.5",
        "--try",
    ]
    with Traffic(server, "slow", callers=4), Client(server.http) as client:

        def instances() -> int:
            return int(client.config("slow")["instance_group"][0]["count"])

        with subprocess.Popen([*command, "--metrics-url=http://127.0.0.1:1/m"], stdout=subprocess.DEVNULL) as tool:
            try:
                until(lambda: instances() == 2)
                tool.send_signal(signal.SIGKILL)
            finally:
                tool.kill()
        assert tool.wait(TIMEOUT_S) == -signal.SIGKILL
        until(lambda: instances() == 1)
    server.wait_for_output("no word for 10 s")


def test_a_server_that_does_not_load_by_name_is_not_tried(models: Path, serve: Serve) -> None:
    server = serve(models)
    with Traffic(server, "slow", callers=4), pytest.raises(NotReady, match="not allowed"):
        advise(f"http://{server.http}", seconds=0.5, metrics_url="http://127.0.0.1:1/m", try_change=True)


def test_a_wrong_command_line_says_what_to_write(server: ServerProcess) -> None:
    assert alipes("advise", "--keep").code == 2
    gone = alipes("advise", "--url=http://127.0.0.1:1")
    assert gone.code == 1
    assert "alipes serve" in gone.err

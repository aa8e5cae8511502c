"""A version replaces another one by steps: it is promoted if it is good, and taken back if it is worse, in any way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import alipes
import pytest
from support.python_models import add_python_model
from support.rollouts import QUICK, WIDE, Requests, add_two_versions, rollout
from support.server import ServerProcess
from support.waiting import until


@pytest.fixture(scope="module")
def scales(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    """Models whose version 2 is the same as version 1, has other outputs, or fails now and then."""
    repository = tmp_path_factory.mktemp("repository")
    for name, factor in (("same", 1.0), ("drifts", 2.0), ("leaves", 1.0), ("stopped", 1.0), ("shadows", 2.0)):
        add_two_versions(repository, name, factor)
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=*")


@contextmanager
def asked(
    server: ServerProcess, model: str, shape: tuple[int, ...] = (1, 2)
) -> Iterator[tuple[alipes.Client, Requests]]:
    with alipes.Client(f"http://{server.http}") as client:
        client.set_traffic(model, {1: 1})
        with Requests(server, model, shape) as requests:
            yield client, requests


def test_a_version_that_is_as_good_gets_all_requests(scales: ServerProcess, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with asked(scales, "same") as (client, requests):
        code, end = rollout(scales.http, "same", *QUICK, *WIDE, f"--journal={journal}")
        assert (code, end["promoted"], end["version"]) == (0, True, 2), end
        assert client.traffic("same").weights == {}
    assert requests.failures == []
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["share"] for event in events if event["event"] == "step"] == [20, 50]
    assert events[-1]["event"] == "promoted"


@pytest.mark.proof
def test_a_version_with_other_outputs_is_rolled_back(scales: ServerProcess) -> None:
    with asked(scales, "drifts") as (client, requests):
        code, end = rollout(scales.http, "drifts", *QUICK, *WIDE)
        assert (code, end["promoted"], end["version"]) == (1, False, 1)
        assert str(end["reason"]).startswith("output Y: worse by "), end
        assert client.traffic("drifts").weights == {1: 1}
    assert requests.failures == []


@pytest.mark.proof
def test_a_version_with_other_outputs_can_be_found_by_copies_alone(scales: ServerProcess) -> None:
    with asked(scales, "shadows") as (client, requests):
        code, end = rollout(scales.http, "shadows", "--steps=0,50", *QUICK[1:], *WIDE)
        assert (code, end["promoted"]) == (1, False)
        assert str(end["reason"]).startswith("output Y: worse by "), end
        assert (client.traffic("shadows").weights, client.traffic("shadows").shadow) == ({1: 1}, None)
    assert requests.failures == []


def test_a_version_that_stops_serving_is_left_without_a_failed_request(scales: ServerProcess) -> None:
    with asked(scales, "leaves") as (client, requests):
        unload = threading.Thread(target=_leave, args=(client,))
        unload.start()
        flags = ("--steps=20", "--last-step-time=60", "--look-every=0.2", "--confidence=0.999")
        code, end = rollout(scales.http, "leaves", *flags)
        unload.join()
        assert (code, end["reason"]) == (1, "version 2 does not serve any more")
    assert requests.failures == []


def _leave(client: alipes.Client) -> None:
    until(lambda: 2 in client.traffic("leaves").weights)
    client.load("leaves", config={"version_policy": {"specific": {"versions": [1]}}})


def test_a_rollout_that_is_interrupted_rolls_back(scales: ServerProcess) -> None:
    with asked(scales, "stopped") as (client, _):
        command = [sys.executable, "-m", "alipes", "rollout", "stopped", "--to=2", f"--url={scales.http}"]
        process = subprocess.Popen([*command, "--look-every=60"], stdout=subprocess.PIPE, text=True)
        until(lambda: 2 in client.traffic("stopped").weights)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        assert out == "version 1 has all requests again: the rollout was stopped\n"
        assert client.traffic("stopped").weights == {1: 1}


def test_a_version_that_fails_now_and_then_is_rolled_back(serve: Callable[..., ServerProcess], tmp_path: Path) -> None:
    body = """
import random

class TritonPythonModel:
    def initialize(self, args):
        self.is_new = args["model_version"] == "2"

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        if self.is_new and random.random() < 0.2:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("one of five"))
        return answer(Y=given(request))
"""
    all_versions, ports = "version_policy { all { } }", "X: FP32[2] -> Y: FP32[2]"
    add_python_model(tmp_path, "fails", body, signature=ports, config=all_versions, versions=(1, 2))
    server = serve(tmp_path)
    with asked(server, "fails", (2,)) as (client, _):
        code, end = rollout(server.http, "fails", *QUICK, *WIDE)
        assert (code, str(end["reason"]).partition(":")[0]) == (1, "errors"), end
        assert client.traffic("fails").weights == {1: 1}

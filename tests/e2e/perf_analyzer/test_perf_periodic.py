"""`alipes perf_analyzer --periodic-concurrency-range`: further requests begin when the last have had some responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import Done, alipes
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# As many responses as X says, to all requests at once, one after the other.
TELLS = """
import threading


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.tell, args=(request.get_response_sender(), int(given(request)[0]))).start()

    def tell(self, sender, count):
        for number in range(count):
            sender.send(answer(Y=np.array([number], np.int32)))
        sender.send(flags=FINAL)
"""
FAILS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            error = pb_utils.TritonError("it does not want to")
            sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("periodic") / "models"
    for name, code in (("tells", TELLS), ("fails", FAILS)):
        add_python_model(repository, name, code, signature="X: INT32[1] -> Y: INT32[1]", config=DECOUPLED)
    return serve_module(repository)


def measure(server: ServerProcess, folder: Path, *words: str, model: str = "tells", count: int = 5) -> Done:
    (folder / "data.json").write_text(json.dumps({"data": [{"X": [count]}]}))
    fixed = ("-m", model, "-i", "grpc", "-u", server.grpc, "--streaming", "--input-data", "data.json")
    return alipes("perf_analyzer", *fixed, "--profile-export-file", "p.json", *words, folder=folder)


def requests(folder: Path) -> list[tuple[int, list[int]]]:
    """When each request was sent and its responses came, in the order in which they were sent."""
    [experiment] = json.loads((folder / "p.json").read_text())["experiments"]
    assert experiment["experiment"] == {"mode": "concurrency", "value": 1}
    return sorted((one["timestamp"], one["response_timestamps"]) for one in experiment["requests"])


def test_a_wave_begins_when_the_last_one_had_enough_responses(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, tmp_path, "--periodic-concurrency-range", "2:8:3", "--request-period", "4")
    assert (done.code, done.err) == (0, "")
    assert "Inferences/Second" not in done.out
    sent = requests(tmp_path)
    assert [len(responses) for _, responses in sent] == [5] * 8
    for wave, following in ((sent[:2], sent[2:5]), (sent[2:5], sent[5:])):
        assert min(moment for moment, _ in following) >= max(responses[3] for _, responses in wave)


def test_requests_with_fewer_responses_do_not_hold_up_a_wave(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, tmp_path, "--periodic-concurrency-range", "1:3", count=2)
    assert (done.code, done.err) == (0, "")
    sent = requests(tmp_path)
    assert [len(responses) for _, responses in sent] == [2] * 3
    assert all(sent[place + 1][0] >= sent[place][1][-1] for place in range(2))


def test_a_request_that_fails_ends_the_run(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, tmp_path, "--periodic-concurrency-range", "1:3", model="fails")
    assert done.code == 99
    assert "it does not want to" in done.err

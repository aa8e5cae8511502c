"""`alipes loadtest` with streams, sequences, shared memory, and several models and servers in one load."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes import Client
from support.command import alipes
from support.models import add_model, times
from support.python_models import DECOUPLED, add_python_model
from support.regions import ALLOWED, mapped_regions
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

SHM = Path("/dev/shm")
LENGTH = 4

# Answers a request with its three values, each in a response of its own.
TELLS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in given(request)[:3]:
                sender.send(answer(Y=np.array([value], np.int32)))
            sender.send(flags=FINAL)
"""

# Says the how manieth request of its sequence each is; one that did not begin, or ends elsewhere, is an error.
NTH = """
class TritonPythonModel:
    def initialize(self, args):
        self.next = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            number = int(given(request, "ID").flat[0])
            nth = 0 if given(request, "START").flat[0] else self.next.get(number, 99)
            self.next[number] = nth + 1
            if given(request, "END").flat[0] and nth != 3:
                error = pb_utils.TritonError(f"the sequence had {nth + 1} requests")
                responses.append(pb_utils.InferenceResponse(error=error))
            else:
                responses.append(answer(Y=np.full((1, 1), nth, np.int32)))
        return responses
"""
STATEFUL = """max_batch_size: 4
sequence_batching { direct { } max_sequence_idle_microseconds: 600000000 control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("kinds")
    add_model(repository, "double", times(2.0, columns=3))
    add_model(repository, "wide", times(3.0, "columns"))
    add_python_model(repository, "tells", TELLS, signature="X: INT32[-1] -> Y: INT32[1]", config=DECOUPLED)
    add_python_model(repository, "nth", NTH, signature="X: INT32[1] -> Y: INT32[1]", config=STATEFUL)
    return serve_module(repository, ALLOWED)


def level_of(*words: str) -> dict[str, Any]:
    done = alipes("loadtest", *words, "--json")
    assert (done.code, done.err) == (0, "")
    level: dict[str, Any] = json.loads(done.out)["levels"][0]
    return level


def executed(server: ServerProcess, model: str) -> int:
    with Client(f"http://{server.http}") as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


def test_a_decoupled_model_is_loaded_over_streams(server: ServerProcess) -> None:
    words = ["tells", f"--url=grpc://{server.grpc}", "--stream", "--shape=X:5", "--count=20", "--callers=2"]
    level = level_of(*words)
    assert (level["answers"], level["failed"]) == (20, 0)
    assert level["responses_rate"] == pytest.approx(3 * 20 / level["seconds"])
    assert level["first_p50_ms"] <= level["p50_ms"]
    shown = alipes("loadtest", *words, "--check=first")
    assert (shown.code, shown.err) == (0, "")
    assert ["load", "responses", "first", "p50", "first", "p99", "gap", "p50", "gap", "p99"] in shown.rows


def test_streams_need_an_address_of_grpc(server: ServerProcess) -> None:
    done = alipes("loadtest", "double", f"--url=http://{server.http}", "--stream")
    assert done.code == 1
    assert "streams need gRPC" in done.message


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("load", [[f"--sequences={LENGTH}", "--callers=3"], [f"--sequences={LENGTH}:1", "--rate=500"]])
def test_sequences_are_whole(server: ServerProcess, wire: str, load: list[str]) -> None:
    words = ["nth", f"--url={wire}://{getattr(server, wire)}", *load]
    level = level_of(*words, f"--count={5 * LENGTH}", "--check=first")
    assert [note for note in level["notes"] if "failed" in note or "wrong" in note] == []
    assert level["answers"] >= 5 * LENGTH
    assert level["checked"] > 0


def test_sequences_have_a_number_of_correlation_ids(server: ServerProcess) -> None:
    words = ["loadtest", "nth", f"--url=http://{server.http}", "--callers=3", f"--count={3 * LENGTH}"]
    assert alipes(*words, f"--sequences={LENGTH}:3").code == 0
    few = alipes(*words, f"--sequences={LENGTH}:2")
    assert few.code == 2
    assert "as many correlation ids as there are callers: 2 of 3" in few.message


@pytest.mark.parametrize("outputs", [[], ["--shared-outputs=64"]])
def test_tensors_lie_in_shared_memory(server: ServerProcess, outputs: list[str]) -> None:
    before = set(SHM.iterdir())
    words = ["double", f"--url=grpc://{server.grpc}", "--shared-memory", *outputs, "--count=20"]
    level = level_of(*words)
    assert (level["answers"], level["failed"]) == (20, 0)
    assert not [path for path in set(SHM.iterdir()) - before if path.name.startswith("alipes-")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_memory(server: ServerProcess, how: signal.Signals) -> None:
    before = executed(server, "double")
    words = ["loadtest", "double", f"--url=http://{server.http}", "--shared-memory", "--count=1000000000"]
    with subprocess.Popen([sys.executable, "-m", "alipes", *words], stderr=subprocess.PIPE, text=True) as tester:
        try:
            until(lambda: executed(server, "double") > before + 10)
            assert len(mapped_regions(tester.pid)) == 1
            tester.send_signal(how)
            _, err = tester.communicate(timeout=TIMEOUT_S)
        finally:
            tester.kill()
    assert "Traceback" not in err
    assert not list(SHM.glob(f"alipes-{tester.pid}-*"))


def test_sequences_lie_in_shared_memory(server: ServerProcess) -> None:
    words = ["nth", f"--url=http://{server.http}", f"--sequences={LENGTH}", "--shared-memory", "--check=first"]
    level = level_of(*words, f"--count={4 * LENGTH}", "--callers=2")
    assert [note for note in level["notes"] if "failed" in note or "wrong" in note] == []


def test_two_are_compared_in_shared_memory(server: ServerProcess) -> None:
    words = ["loadtest", "double", "--shared-memory", "--rounds=4", "--window=0.05", "--warm-up=0.01"]
    done = alipes(*words, "--compare", f"http://{server.http}", f"grpc://{server.grpc}")
    assert (done.code, done.err) == (0, "")


def test_models_and_servers_are_mixed_and_checked(server: ServerProcess) -> None:
    before = [executed(server, model) for model in ("double", "wide")]
    words = ["loadtest", f"--url=http://{server.http}", "--mix=double=3", f"--mix=wide:1@grpc://{server.grpc}"]
    words += ["--shape=wide/X:2", "--count=80", "--callers=2", "--check=first"]
    done = alipes(*words, "--json")
    assert (done.code, done.err) == (0, "")
    level = json.loads(done.out)["levels"][0]
    shares = {share["share"]: share for share in level["shares"]}
    assert {name: share["answers"] for name, share in shares.items()} == {
        "double": 60,
        f"wide:1@grpc://{server.grpc}": 20,
    }
    assert all(share["checked"] > 0 and share["wrong"] == 0 for share in shares.values())
    assert level["checked"] == sum(share["checked"] for share in shares.values())
    after = [executed(server, model) for model in ("double", "wide")]
    assert [late - early for late, early in zip(after, before, strict=True)] == [60, 20]
    shown = alipes(*words)
    assert [row[0] for row in shown.rows[1:4]] == ["2", "double", f"wide:1@grpc://{server.grpc}"]


def test_a_shape_of_a_mix_belongs_to_an_input(server: ServerProcess) -> None:
    words = ["loadtest", f"--url=http://{server.http}", "--mix=double", "--mix=wide", "--count=10"]
    assert alipes(*words, "--shape=wide/X:2").code == 0
    done = alipes(*words, "--shape=nobody/X:2")
    assert done.code == 2
    assert "no model of --mix has an input 'nobody/X'" in done.message

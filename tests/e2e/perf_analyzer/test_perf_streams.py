"""`alipes perf_analyzer` with streams, sequences and a profile of every request."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import Done, alipes
from support.perf_models import add_perf_models
from support.perf_runs import FOLDER
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

QUICK = ("-p", "300", "-s", "1000000")
# Fails where a request does not follow the one before it.
ORDERED = """
class TritonPythonModel:
    def initialize(self, args):
        self.open = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        names = ("READY", "START", "END", "ID")
        ready, start, end, identity = (int(given(request, name)[0, 0]) for name in names)
        if not ready:  # a row of a batch that no sequence has
            return answer(Y=given(request))
        if start == (identity in self.open):
            raise RuntimeError(f"sequence {identity} has {self.open.get(identity)} requests and starts: {start}")
        self.open[identity] = self.open.get(identity, 0) + 1
        if end:
            del self.open[identity]
        return answer(Y=given(request))
"""
SEQUENCES = """
max_batch_size: 4
sequence_batching {
  control_input [
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""
# Answers with the steps of its sequence so far; fails where a sequence does not begin with its first step, or
# its id had been seen before.
STEPS = """
class TritonPythonModel:
    def initialize(self, args):
        self.open, self.seen = {}, set()

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        start, end, identity, step = (
            int(given(request, name).flat[0]) for name in ("START", "END", "ID", "X")
        )
        if start:
            if identity in self.seen:
                raise RuntimeError(f"sequence {identity} begins again")
            self.seen.add(identity)
        steps = self.open.setdefault(identity, [])
        steps.append(step)
        if steps != [1, 2, 3][: len(steps)] or end != (step == 3):
            raise RuntimeError(f"sequence {identity} has {steps}, and ends: {end}")
        if end:
            del self.open[identity]
        return answer(Y=np.array([[len(steps)]], np.int32))
"""
IDS = """
max_batch_size: 4
sequence_batching { oldest { max_candidate_sequences: 4 } control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ]}
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("streams") / "models"
    add_perf_models(repository)
    add_python_model(repository, "tells", REPORTS, signature="X: INT32[3] -> Y: INT32[1]", config=DECOUPLED)
    add_python_model(repository, "ordered", ORDERED, signature="X: INT32[1] -> Y: INT32[1]", config=SEQUENCES)
    for name in ("flat", "nested", "streaming", "rate", "wrong"):
        add_python_model(
            repository,
            f"steps_{name}",
            STEPS,
            signature="X: INT32[1] -> Y: INT32[1]",
            config=IDS,
        )
    yield serve_module(repository)


def measure(server: ServerProcess, model: str, *words: str, wire: str = "grpc", folder: Path | None = None) -> Done:
    address = getattr(server, wire)
    return alipes("perf_analyzer", "-m", model, "-i", wire, "-u", address, *QUICK, *words, folder=folder)


def figure(done: Done, name: str) -> float:
    """The first number behind a name in the text."""
    return float(done.out.partition(f"{name}: ")[2].split()[0])


def test_a_decoupled_model_has_a_rate_of_responses(server: ServerProcess, tmp_path: Path) -> None:
    done = measure(server, "tells", "--streaming", "-a", "-f", "t.csv", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "  Detected decoupled model, using the first response for measuring latency\n" in done.out
    assert figure(done, "Response Throughput") == pytest.approx(3 * figure(done, "Throughput"), rel=0.1)
    [row] = csv.DictReader((tmp_path / "t.csv").read_text().splitlines())
    assert float(row["Response Throughput"]) > 0


def test_a_stream_cannot_be_synchronous(server: ServerProcess) -> None:
    done = measure(server, "identity", "--streaming", "--sync", "--shape", "INPUT0:2")
    assert (done.code, done.err) == (99, "can not use streaming with synchronous API\n")


def test_a_decoupled_model_needs_a_stream(server: ServerProcess) -> None:
    done = measure(server, "tells")
    assert done.code == 99
    assert "doesn't support models with decoupled transaction policy" in done.err


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("load", [("--concurrency-range", "3"), ("--request-rate-range", "200")])
def test_sequences_keep_their_order(server: ServerProcess, wire: str, load: tuple[str, str]) -> None:
    done = measure(server, "ordered", *load, "--sequence-length", "4", wire=wire)
    assert (done.code, done.err) == (0, "")
    assert figure(done, "Sequence count") > 0
    assert "  Using asynchronous calls for inference\n" in done.out


def test_sequences_may_go_over_streams(server: ServerProcess) -> None:
    done = measure(server, "ordered", "--streaming", "--concurrency-range", "2", "--sequence-length", "4")
    assert (done.code, done.err) == (0, "")


def test_streams_of_a_document_are_sequences(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps({"data": [[{"X": [1]}] * 3, [{"X": [2]}] * 5]}))
    done = measure(server, "ordered", "--input-data", "data.json", "--concurrency-range", "2", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert " Successfully read data for 2 stream/streams.\n" in done.out


ONE_STREAM = {"data": [{"X": [1]}, {"X": [2]}, {"X": [3]}], "validation_data": [{"Y": [1]}, {"Y": [2]}, {"Y": [3]}]}
NESTED = {name: [steps] for name, steps in ONE_STREAM.items()}


@pytest.mark.parametrize(
    ("name", "document", "wire", "words"),
    [
        ("flat", ONE_STREAM, "http", ("--concurrency-range", "1:2", "-r", "3")),
        ("nested", NESTED, "grpc", ("--concurrency-range", "1")),
        ("streaming", NESTED, "grpc", ("--streaming", "--concurrency-range", "1")),
        ("rate", NESTED, "http", ("--request-rate-range", "100", "--num-of-sequences", "1")),
    ],
)
def test_a_sequence_is_its_stream_under_the_next_id(
    server: ServerProcess, tmp_path: Path, name: str, document: Any, wire: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "data.json").write_text(json.dumps(document))
    done = measure(server, f"steps_{name}", "--input-data", "data.json", *words, wire=wire, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert figure(done, "Sequence count") > 0


def test_answers_of_sequences_are_compared(server: ServerProcess, tmp_path: Path) -> None:
    wrong = {**ONE_STREAM, "validation_data": [{"Y": [1]}, {"Y": [2]}, {"Y": [7]}]}
    (tmp_path / "data.json").write_text(json.dumps(wrong))
    words = ("--input-data", "data.json", "--concurrency-range", "2", "--sequence-id-range", "1:1000000")
    done = measure(server, "steps_wrong", *words, folder=tmp_path)
    assert done.code == 99
    assert "Output doesn't match expected output" in done.err


def test_too_few_correlation_ids_are_refused(server: ServerProcess) -> None:
    done = measure(server, "ordered", "--sequence-id-range", "1:3", "--concurrency-range", "8")
    assert done.code == 3
    assert "sequence id range specified is smaller than the maximum possible concurrency" in done.err


def test_batches_of_sequences_are_refused(server: ServerProcess) -> None:
    done = measure(server, "ordered", "-b", "2")
    assert (done.code, done.err) == (99, "can not specify batch size > 1 when using a sequence model\n")


def keys(profile: dict[str, Any]) -> list[set[str]]:
    """What documents, experiments and requests of a profile have, but for the outputs, which ours leaves out."""
    experiments = profile["experiments"]
    requests = [request for experiment in experiments for request in experiment["requests"]]
    return [
        profile.keys() - {"service_kind", "endpoint"},
        *(set(experiment) for experiment in experiments),
        set().union(*requests) - {"response_outputs"},
    ]


def test_a_profile_has_every_request(server: ServerProcess, tmp_path: Path) -> None:
    words = ("--request-rate-range", "20:40:20", "--profile-export-file", "p.json")
    done = measure(server, "mlp", *words, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    profile = json.loads((tmp_path / "p.json").read_text())
    recorded = json.loads((FOLDER / "request_rate_constant.json").read_text())
    assert keys(profile) == keys(recorded)
    assert [experiment["experiment"] for experiment in profile["experiments"]] == [
        {"mode": "request_rate", "value": 20.0},
        {"mode": "request_rate", "value": 40.0},
    ]
    for experiment in profile["experiments"]:
        starts = experiment["window_boundaries"]
        assert starts == sorted(starts)
        for request in experiment["requests"]:
            assert starts[0] <= request["timestamp"] <= min(request["response_timestamps"])
    counts = [len(experiment["requests"]) for experiment in profile["experiments"]]
    assert [f"    Request count: {count}\n" in done.out for count in counts] == [True, True]
    again = measure(server, "mlp", *words, folder=tmp_path)
    assert again.code == 99
    assert "Path must not already exist." in again.err


def test_a_profile_of_a_stream_has_each_response(server: ServerProcess, tmp_path: Path) -> None:
    words = ("--streaming", "-a", "--request-count", "10", "--profile-export-file", "p.json")
    done = measure(server, "tells", *words, folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    [experiment] = json.loads((tmp_path / "p.json").read_text())["experiments"]
    assert [len(request["response_timestamps"]) for request in experiment["requests"]] == [3] * 10

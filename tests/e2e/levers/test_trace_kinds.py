"""What a trace shows of each kind of request and of each end: who was asked by whom, which moments, which tensors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import HttpEndpoint, Reply
from support.held_requests import HOLD, HOLD_ROW, OBEYS, ROW, HeldRequests, X, held_requests
from support.notes import Notes
from support.processes import under_way
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.streams import Stream
from support.trace_files import Documents, heads, moments, read
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]
Action = Callable[[HeldRequests], object]

VECTORS = Path(__file__).parents[2] / "vectors"

LIMITED = (
    "max_batch_size: 1 dynamic_batching { default_queue_policy { "
    "default_timeout_microseconds: 60000000 allow_timeout_override: true } }"
)

# Asks the ensemble, in its own trace where X is above zero.
CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        x = given(requests[0])
        traced = {"trace": requests[0].trace()} if x[0] > 0 else {}
        call = pb_utils.InferenceRequest(
            model_name="chain", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x)], **traced)
        call.exec()
        return [answer(Y=x)]
"""

CHAIN = """
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [
  { model_name: "obeys" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }
] }
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, folder: Path, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "obeys", OBEYS)
    add_python_model(repository, "limited", OBEYS, config=LIMITED)
    add_python_model(repository, "cached", OBEYS, config="response_cache { enable: true }\n")
    add_python_model(repository, "reports", REPORTS, config=DECOUPLED)
    add_python_model(repository, "calls", CALLS)
    (repository / "table" / "1").mkdir(parents=True)
    shutil.copy(VECTORS / "onnx" / "table.onnx", repository / "table" / "1" / "model.onnx")
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    settings = (f"triton,file={folder / 'trace.json'}", "level=TIMESTAMPS", "level=TENSORS", "rate=1")
    return serve_module(
        repository,
        *(f"--trace-config={setting}" for setting in (*settings, "triton,log-frequency=1")),
        "--cache-config=local,size=1048576",
        environment=notes.environment,
    )


@pytest.fixture
def held(server: ServerProcess, notes: Notes) -> Iterator[HeldRequests]:
    with held_requests(server, notes) as made:
        yield made


@pytest.fixture
def last_trace(folder: Path, held: HeldRequests) -> Callable[[Action, int], Documents]:
    """The trace that ends last of those that an action leaves."""

    def trace(action: Action, count: int) -> Documents:
        before = len(list(folder.iterdir()))
        action(held)
        until(lambda: len(list(folder.iterdir())) >= before + count)
        return read(folder / f"trace.json.{before + count - 1}")

    return trace


QUEUED = {"REQUEST_START", "QUEUE_START", "REQUEST_END"}
EXECUTED = QUEUED | {"COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"}
RESPONSE = "INFER_RESPONSE_COMPLETE"


def asked(model: str, inputs: dict[str, object] = X) -> Action:
    return lambda held: held.ask(model, inputs)


def refused(model: str, inputs: dict[str, object], text: str) -> Action:
    return lambda held: held.fail(model, inputs, text)


def streamed(values: list[int]) -> Action:
    def stream(held: HeldRequests) -> None:
        with Stream(held.server) as opened:
            opened.send("reports", {"X": np.array(values, np.int32)})
            assert len(list(opened.replies())) == len(values)

    return stream


def hold(held: HeldRequests, model: str, inputs: dict[str, object] = HOLD) -> Future[Reply]:
    return held.hold(model, inputs)


def too_long_a_wait(held: HeldRequests) -> None:
    held.fail("limited", ROW, "Request timeout expired", timeout_us=1000)


def cancelled_while_it_waits(held: HeldRequests) -> None:
    before = under_way(held.server, "obeys")
    call = held.call("obeys", X)
    until(lambda: under_way(held.server, "obeys") > before)
    call.cancel()


def kept(held: HeldRequests) -> None:
    for _ in range(2):
        held.ask("cached", X)


# What is done, how many traces it leaves, and of the last one the models with their callers and moments.
KINDS: dict[str, tuple[Action, int, list[tuple[str, str, set[str]]]]] = {
    "an answer": (asked("obeys"), 1, [("obeys", "", EXECUTED)]),
    "an exception": (refused("obeys", {"X": [-1]}, "negative"), 1, [("obeys", "", EXECUTED)]),
    "a failed engine": (
        refused("table", {"X": np.array([[9]], np.int64)}, "out of data bounds"),
        1,
        [("table", "", EXECUTED)],
    ),
    "a kept answer": (kept, 2, [("cached", "", QUEUED)]),
    "an ensemble": (asked("chain"), 1, [("chain", "", QUEUED), ("obeys", "chain", EXECUTED)]),
    "a failed step": (
        refused("chain", {"X": [-1]}, "in ensemble"),
        1,
        [("chain", "", QUEUED), ("obeys", "chain", EXECUTED)],
    ),
    "a call": (
        asked("calls"),
        1,
        [("calls", "", EXECUTED), ("chain", "calls", QUEUED), ("obeys", "chain", EXECUTED)],
    ),
    "a call of its own": (asked("calls", {"X": [0]}), 1, [("calls", "", EXECUTED)]),
    "no response": (streamed([]), 1, [("reports", "", EXECUTED)]),
    "one response": (streamed([1]), 1, [("reports", "", EXECUTED)]),
    "many responses": (streamed([1, 2, 3]), 1, [("reports", "", EXECUTED)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_model_shows_its_caller_and_its_moments(last_trace: Callable[[Action, int], Documents], kind: str) -> None:
    action, count, expected = KINDS[kind]
    documents = last_trace(action, count)
    check(documents, expected, 0 if kind == "no response" else 1)


def check(documents: Documents, expected: list[tuple[str, str, set[str]]], responses: int) -> None:
    """Models, their callers and their moments, and in the first record the response that its endpoint has seen."""
    names = {head["id"]: head["model_name"] for head in heads(documents)}
    callers = {head["id"]: names.get(head.get("parent_id"), "") for head in heads(documents)}
    stamps = [stamp["name"] for one in documents for stamp in one.get("timestamps", [])]
    assert stamps.count(RESPONSE) == responses
    found = []
    for number, name in sorted(names.items()):
        seen = {moment for moment in moments(documents, number) if not moment.startswith(("HTTP", "GRPC"))}
        found.append((name, callers[number], seen - {RESPONSE}))
        assert RESPONSE not in seen or callers[number] == ""
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("end", "model", "responses"), [(too_long_a_wait, "limited", 1), (cancelled_while_it_waits, "obeys", 0)]
)
def test_a_request_that_never_ran_shows_that_it_waited(
    held: HeldRequests, last_trace: Callable[[Action, int], Documents], end: Action, model: str, responses: int
) -> None:
    first = held.hold(model, HOLD_ROW if model == "limited" else HOLD)
    check(last_trace(end, 1), [(model, "", QUEUED)], responses)
    # Its trace is written after its answer, and is waited for: the next test would take it for its own.
    check(last_trace(lambda held: held.go_on(first), 1), [(model, "", EXECUTED)], 1)


def test_tensors_are_shown_where_each_model_takes_and_gives_them(
    last_trace: Callable[[Action, int], Documents],
) -> None:
    documents = last_trace(asked("calls", {"X": [3]}), 1)
    names = {head["id"]: head["model_name"] for head in heads(documents)}
    seen = sorted(
        (names[one["id"]], one["activity"], one["tensor"]["name"], one["tensor"]["data"])
        for one in documents
        if "activity" in one
    )
    assert seen == [
        (model, activity, tensor, "3")
        for model in ("calls", "chain", "obeys")
        for activity, tensor in (("TENSOR_BACKEND_OUTPUT", "Y"), ("TENSOR_QUEUE_INPUT", "X"))
    ]


def test_each_of_many_responses_shows_its_tensors(last_trace: Callable[[Action, int], Documents]) -> None:
    documents = last_trace(streamed([1, 2, 3]), 1)
    given = [one["tensor"]["data"] for one in documents if one.get("activity") == "TENSOR_BACKEND_OUTPUT"]
    assert given == ["1", "2", "3"]


def change(server: ServerProcess, path: str, **settings: object) -> dict[str, object]:
    connection = HTTPConnection(server.http, timeout=TIMEOUT_S)
    connection.request("POST", path, json.dumps(settings))
    answer = connection.getresponse()
    document: dict[str, object] = json.loads(answer.read())
    connection.close()
    assert answer.status == 200, document
    return document


GENERAL, OWN = "/v2/trace/setting", "/v2/models/obeys/trace/setting"


def test_a_model_follows_what_was_not_set_for_it(server: ServerProcess) -> None:
    """Values come from the model's settings, then from the general ones, then from the command line."""
    try:
        assert change(server, OWN, trace_rate="7")["trace_rate"] == "7"
        assert change(server, GENERAL, trace_rate="5", trace_count="9")["trace_rate"] == "5"
        own = change(server, OWN)
        assert (own["trace_rate"], own["trace_count"]) == ("7", "9")
        assert change(server, "/v2/models/chain/trace/setting")["trace_rate"] == "5"
        change(server, GENERAL, trace_rate=None)
        general, own = change(server, GENERAL), change(server, OWN)
        assert (general["trace_rate"], general["trace_count"], own["trace_rate"]) == ("1", "9", "7")
        assert change(server, OWN, trace_rate=None)["trace_rate"] == "1"
    finally:
        change(server, OWN, trace_rate=None, trace_level=None, trace_count=None, log_frequency=None)
        change(server, GENERAL, trace_rate=None, trace_level=None, trace_count=None, log_frequency=None)
    assert change(server, GENERAL) == change(server, OWN)
    assert change(server, OWN)["trace_count"] == "-1"


def test_settings_of_a_model_count_its_requests_alone(server: ServerProcess, folder: Path) -> None:
    def left() -> int:
        return len(list(folder.iterdir()))

    try:
        change(server, OWN, trace_rate="2", trace_count="2")
        before = left()
        with HttpEndpoint(server) as endpoint:
            for number in range(8):
                endpoint.ask("obeys", X, request_id=str(number))
            until(lambda: left() == before + 2)
            endpoint.ask("table", {"X": np.array([[1]], np.int64)}, request_id="another")
            until(lambda: left() == before + 3)
        files = [read(folder / f"trace.json.{number}") for number in range(before, before + 3)]
        assert [head["request_id"] for file in files for head in heads(file)] == ["1", "3", "another"]
        assert change(server, OWN)["trace_count"] == "0"
    finally:
        change(server, OWN, trace_rate=None, trace_count=None)

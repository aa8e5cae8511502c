"""After every kind of end statistics, counters and summaries say the same, and nothing is pending."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.endpoints import HttpEndpoint, Refusal, Reply, Request, tensors
from support.exposition import samples
from support.notes import Notes
from support.processes import under_way, workers_of
from support.python_models import DECOUPLED, add_python_model
from support.server import TIMEOUT_S, ServerProcess
from support.streams import Stream
from support.waiting import until
from tritonclient.grpc import service_pb2, service_pb2_grpc

Serve = Callable[..., ServerProcess]

VECTORS = Path(__file__).parents[2] / "vectors"

# A negative X raises; 7 waits until the test lets it go on.
OBEYS = """
class TritonPythonModel:
    def execute(self, requests):
        x = given(requests[0]).flat[0]
        if x < 0:
            raise ValueError("negative")
        if x == 7:
            note("holding", os.getpid())
            await_note("go on")
        return [answer(Y=given(request)) for request in requests]
"""

# Gives each value of X as a response of its own, and raises at the first negative one.
REPORTS_OR_RAISES = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in given(request):
                if value < 0:
                    raise ValueError("negative")
                sender.send(answer(Y=np.array([value], np.int32)))
            sender.send(flags=FINAL)
"""

CHAIN = """
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [
  { model_name: "obeys" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }
] }
"""

# One request may wait, for a minute or as long as it says.
LIMITED = (
    "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 1 "
    "default_timeout_microseconds: 60000000 allow_timeout_override: true timeout_action: %s } }"
)
HOLD, X = {"X": [7]}, {"X": [1]}
HOLD_ROW, ROW = {"X": [[7]]}, {"X": [[1]]}


@dataclass
class Bench:
    """A server with a model for each kind of end, and what a test needs to bring that about."""

    server: ServerProcess
    notes: Notes
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def ask(
        self, model: str, inputs: dict[str, Any], *, outputs: list[str] | None = None, timeout_us: int | None = None
    ) -> Reply:
        with HttpEndpoint(self.server) as endpoint:
            return endpoint.infer(Request(model, inputs, "", None, outputs, "", timeout_us))

    def fail(self, model: str, inputs: dict[str, Any], text: str, **more: Any) -> None:
        with pytest.raises(Refusal, match=text):
            self.ask(model, inputs, **more)

    def hold(self, model: str, inputs: dict[str, Any] = HOLD) -> Future[Reply]:
        """A request that executes until `go_on`."""
        future = self.pool.submit(self.ask, model, inputs)
        self.notes.read("holding")
        return future

    def wait_behind(self, model: str, inputs: dict[str, Any], **more: Any) -> Future[Reply]:
        """A request that waits behind the one that is held."""
        before = under_way(self.server, model)
        future = self.pool.submit(self.ask, model, inputs, **more)
        until(lambda: under_way(self.server, model) > before)
        return future

    def go_on(self, *held: Future[Reply]) -> None:
        self.notes.write("go on")
        for one in held:
            one.result(TIMEOUT_S)

    def call(self, model: str, inputs: dict[str, Any]) -> grpc.Future:
        """A gRPC call that can be cancelled."""
        message = service_pb2.ModelInferRequest(model_name=model)
        for tensor in tensors(grpc_client, inputs):
            message.inputs.append(tensor._get_tensor())
            message.raw_input_contents.append(tensor._get_content())
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        return stub.ModelInfer.future(message, timeout=TIMEOUT_S)

    def post(self, model: str, value: int) -> HTTPConnection:
        """A request over HTTP whose answer is not read."""
        tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [value]}
        connection = HTTPConnection(self.server.http, timeout=TIMEOUT_S)
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
        return connection

    def __post_init__(self) -> None:
        self.channel = grpc.insecure_channel(self.server.grpc)

    def close(self) -> None:
        self.channel.close()
        self.pool.shutdown()


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "obeys", OBEYS)
    add_python_model(repository, "leaves", OBEYS)
    for action in ("REJECT", "DELAY"):
        add_python_model(repository, action.lower(), OBEYS, config=LIMITED % action)
    add_python_model(repository, "cached", OBEYS, config="response_cache { enable: true }\n")
    add_python_model(repository, "reports", REPORTS_OR_RAISES, config=DECOUPLED)
    (repository / "table" / "1").mkdir(parents=True)
    shutil.copy(VECTORS / "onnx" / "table.onnx", repository / "table" / "1" / "model.onnx")
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    flags = ("histogram_latencies=true", "summary_latencies=true")
    return serve_module(
        repository,
        *(f"--metrics-config={flag}" for flag in flags),
        "--cache-config=local,size=1048576",
        "--model-control-mode=explicit",
        "--load-model=*",
        environment=notes.environment,
    )


@pytest.fixture
def bench(server: ServerProcess, notes: Notes) -> Iterator[Bench]:
    made = Bench(server, notes)
    yield made
    notes.write("go on")
    made.close()
    for name in notes.names():
        notes.remove(name)


def counts(server: ServerProcess, model: str) -> Counter[str]:
    """What is counted of a model, once nothing of it is pending; every place that counts says the same."""
    if model not in ("chain", "table"):
        until(lambda: under_way(server, model) == 0)
    with HttpEndpoint(server) as endpoint:
        statistics = endpoint.statistics(model)
    tallies = {name: int(tally["count"]) for name, tally in statistics["inference_stats"].items()}
    found = samples(server)

    def of(name: str, **labels: str) -> int:
        text = "".join(f',{key}="{value}"' for key, value in labels.items())
        return int(found[f'{name}{{model="{model}",version="1"{text}}}'])

    reasons = {reason: of("nv_inference_request_failure", reason=reason) for reason in REASONS}
    rows, executions = statistics["inference_count"], statistics["execution_count"]
    batches = sum(batch["compute_infer"]["count"] for batch in statistics["batch_stats"])
    computed = {tallies[f"compute_{part}"] for part in ("input", "infer", "output")}
    summaries = {of(f"nv_inference_compute_{part}_summary_us_count") for part in ("input", "infer", "output")}
    assert of("nv_inference_pending_request_count") == 0
    assert of("nv_inference_request_success") == tallies["success"]
    assert sum(reasons.values()) == tallies["fail"]
    assert (of("nv_inference_count"), of("nv_inference_exec_count"), batches) == (rows, executions, executions)
    assert computed == summaries == {tallies["success"] - tallies["cache_hit"]}
    assert of("nv_inference_queue_summary_us_count") == tallies["queue"] == tallies["success"]
    if model == "cached":
        for name, key in (("hit", "hits"), ("miss", "misses")):
            assert of(f"nv_cache_num_{key}_per_model") == tallies[f"cache_{name}"]
            assert of(f"nv_cache_{name}_summary_per_model_count") == tallies[f"cache_{name}"]
    else:
        assert of("nv_inference_request_summary_us_count") == tallies["success"]
    return Counter(
        success=tallies["success"],
        hits=tallies["cache_hit"],
        misses=tallies["cache_miss"],
        rows=rows,
        executions=executions,
        first=of("nv_inference_first_response_histogram_ms_count"),
        **reasons,
    )


REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER")


def executed(times: int, **more: int) -> Counter[str]:
    """What so many successful executions of a request each add, and more."""
    return Counter(success=times, rows=times, executions=times, first=times) + Counter(more)


def answered(bench: Bench) -> None:
    bench.ask("obeys", X)


def refused_by_a_check(bench: Bench) -> None:
    bench.fail("obeys", {"X": np.ones(1, np.float32)}, "data-type is 'FP32'")
    bench.fail("obeys", X, "unexpected inference output 'Z'", outputs=["Z"])


def a_full_queue(bench: Bench) -> None:
    held = bench.hold("reject", HOLD_ROW)
    waiting = bench.wait_behind("reject", ROW)
    bench.fail("reject", ROW, "Exceeds maximum queue size")
    bench.go_on(held, waiting)


def too_long_a_wait(bench: Bench) -> None:
    held = bench.hold("reject", HOLD_ROW)
    bench.fail("reject", ROW, "Request timeout expired", timeout_us=1000)
    bench.go_on(held)


def a_wait_that_may_be_longer(bench: Bench) -> None:
    held = bench.hold("delay", HOLD_ROW)
    waiting = bench.wait_behind("delay", ROW, timeout_us=1)
    bench.go_on(held, waiting)


def cancelled_while_it_waits(bench: Bench) -> None:
    held = bench.hold("obeys")
    before = under_way(bench.server, "obeys")
    call = bench.call("obeys", X)
    until(lambda: under_way(bench.server, "obeys") > before)
    call.cancel()
    until(lambda: under_way(bench.server, "obeys") == before)
    bench.go_on(held)


def hung_up_while_it_waits(bench: Bench) -> None:
    held = bench.hold("obeys")
    before = under_way(bench.server, "obeys")
    connection = bench.post("obeys", 1)
    until(lambda: under_way(bench.server, "obeys") > before)
    connection.close()
    until(lambda: under_way(bench.server, "obeys") == before)
    bench.go_on(held)


def cancelled_while_it_executes(bench: Bench) -> None:
    call = bench.call("obeys", HOLD)
    bench.notes.read("holding")
    call.cancel()
    bench.go_on()


def hung_up_while_it_executes(bench: Bench) -> None:
    connection = bench.post("obeys", 7)
    bench.notes.read("holding")
    connection.close()
    bench.go_on()


def an_exception(bench: Bench) -> None:
    bench.fail("obeys", {"X": [-1]}, "ValueError: negative")


def an_engine_that_fails(bench: Bench) -> None:
    bench.fail("table", {"X": np.array([[9]], np.int64)}, "indices element out of data bounds")


def an_answer_that_is_kept(bench: Bench) -> None:
    for _ in range(3):
        bench.ask("cached", X)


def a_failed_step(bench: Bench) -> None:
    bench.fail("chain", {"X": [-1]}, "in ensemble 'chain', ")


def an_answered_ensemble(bench: Bench) -> None:
    bench.ask("chain", X)


def a_stream_of(values: list[int]) -> Callable[[Bench], None]:
    def stream(bench: Bench) -> None:
        with Stream(bench.server) as opened:
            opened.send("reports", {"X": np.array(values, np.int32)})
            replies = list(opened.replies())
        assert len(replies) == len(values)
        assert isinstance(replies[-1], Refusal) if -1 in values else True

    return stream


def a_dead_worker(bench: Bench) -> None:
    failed = bench.hold("obeys")
    victim = int(bench.notes.read("holding"))
    assert victim in {worker.pid for worker in workers_of(bench.server)}
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(Refusal, match="is started again"):
        failed.result(TIMEOUT_S)
    bench.notes.remove("holding")
    bench.ask("obeys", X)


ENDS: list[tuple[Callable[[Bench], None], str, Counter[str]]] = [
    (answered, "obeys", executed(1)),
    (refused_by_a_check, "obeys", Counter()),
    (a_full_queue, "reject", executed(2)),
    (too_long_a_wait, "reject", executed(1, REJECTED=1, first=1)),
    (a_wait_that_may_be_longer, "delay", executed(2)),
    (cancelled_while_it_waits, "obeys", executed(1, CANCELED=1)),
    (hung_up_while_it_waits, "obeys", executed(1, CANCELED=1)),
    (cancelled_while_it_executes, "obeys", executed(1)),
    (hung_up_while_it_executes, "obeys", executed(1)),
    (an_exception, "obeys", Counter(BACKEND=1, executions=1, first=1)),
    (an_engine_that_fails, "table", Counter(BACKEND=1, first=1)),
    (an_answer_that_is_kept, "cached", executed(1, success=2, hits=2, misses=1, first=2)),
    # Ensembles have no histogram of first responses, as in Triton.
    (an_answered_ensemble, "chain", executed(1) - Counter(first=1)),
    (an_answered_ensemble, "obeys", executed(1)),
    (a_failed_step, "chain", Counter(OTHER=1)),
    (a_failed_step, "obeys", Counter(BACKEND=1, executions=1, first=1)),
    (a_stream_of([]), "reports", executed(1) - Counter(first=1)),
    (a_stream_of([1]), "reports", executed(1)),
    (a_stream_of([1, 2, 3]), "reports", executed(1)),
    (a_stream_of([1, -1]), "reports", Counter(BACKEND=1, executions=1, first=1)),
    (a_dead_worker, "obeys", executed(1, BACKEND=1, first=1)),
]


@pytest.mark.parametrize(("end", "model", "expected"), ENDS)
def test_each_end_is_counted_once_and_everywhere(
    bench: Bench, end: Callable[[Bench], None], model: str, expected: Counter[str]
) -> None:
    before = counts(bench.server, model)
    end(bench)
    assert counts(bench.server, model) - before == expected


def test_what_waits_for_a_model_that_is_unloaded_is_answered(bench: Bench) -> None:
    held = bench.hold("leaves")
    waiting = bench.wait_behind("leaves", X)
    with HttpEndpoint(bench.server) as endpoint:
        endpoint.unload("leaves")
        bench.fail("leaves", X, "'leaves' has no available versions")
        bench.go_on(held, waiting)
        until(lambda: not any('model="leaves"' in name for name in samples(bench.server)), "its metrics are left")
        endpoint.load("leaves")
    assert counts(bench.server, "leaves") == Counter()

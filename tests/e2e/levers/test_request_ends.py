"""After every kind of end statistics, counters and summaries say the same, and nothing is pending."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import HttpEndpoint, Refusal
from support.exposition import samples
from support.held_requests import HOLD, HOLD_ROW, OBEYS, ROW, HeldRequests, X, held_requests
from support.notes import Notes
from support.processes import under_way, workers_of
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.streams import Stream
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]
Action = Callable[[HeldRequests], None]

VECTORS = Path(__file__).parents[2] / "vectors"

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
def held(server: ServerProcess, notes: Notes) -> Iterator[HeldRequests]:
    with held_requests(server, notes) as made:
        yield made


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
        return int(found[f'{name}{{model="{model}"{text},version="1"}}'])

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


def answered(held: HeldRequests) -> None:
    held.ask("obeys", X)


def refused_by_a_check(held: HeldRequests) -> None:
    held.fail("obeys", {"X": np.ones(1, np.float32)}, "data-type is 'FP32'")
    held.fail("obeys", X, "unexpected inference output 'Z'", outputs=["Z"])


def a_full_queue(held: HeldRequests) -> None:
    first = held.hold("reject", HOLD_ROW)
    waiting = held.wait_behind("reject", ROW)
    held.fail("reject", ROW, "Exceeds maximum queue size")
    held.go_on(first, waiting)


def too_long_a_wait(held: HeldRequests) -> None:
    first = held.hold("reject", HOLD_ROW)
    held.fail("reject", ROW, "Request timeout expired", timeout_us=1000)
    held.go_on(first)


def a_wait_that_may_be_longer(held: HeldRequests) -> None:
    first = held.hold("delay", HOLD_ROW)
    waiting = held.wait_behind("delay", ROW, timeout_us=1)
    held.go_on(first, waiting)


def cancelled_while_it_waits(held: HeldRequests) -> None:
    first = held.hold("obeys")
    before = under_way(held.server, "obeys")
    call = held.call("obeys", X)
    until(lambda: under_way(held.server, "obeys") > before)
    call.cancel()
    until(lambda: under_way(held.server, "obeys") == before)
    held.go_on(first)


def hung_up_while_it_waits(held: HeldRequests) -> None:
    first = held.hold("obeys")
    before = under_way(held.server, "obeys")
    connection = held.post("obeys", 1)
    until(lambda: under_way(held.server, "obeys") > before)
    connection.close()
    until(lambda: under_way(held.server, "obeys") == before)
    held.go_on(first)


def cancelled_while_it_executes(held: HeldRequests) -> None:
    call = held.call("obeys", HOLD)
    held.notes.read("holding")
    call.cancel()
    held.go_on()


def hung_up_while_it_executes(held: HeldRequests) -> None:
    connection = held.post("obeys", 7)
    held.notes.read("holding")
    connection.close()
    held.go_on()


def an_exception(held: HeldRequests) -> None:
    held.fail("obeys", {"X": [-1]}, "ValueError: negative")


def an_engine_that_fails(held: HeldRequests) -> None:
    held.fail("table", {"X": np.array([[9]], np.int64)}, "indices element out of data bounds")


def an_answer_that_is_kept(held: HeldRequests) -> None:
    for _ in range(3):
        held.ask("cached", X)


def a_failed_step(held: HeldRequests) -> None:
    held.fail("chain", {"X": [-1]}, "in ensemble 'chain', ")


def an_answered_ensemble(held: HeldRequests) -> None:
    held.ask("chain", X)


def a_stream_of(values: list[int]) -> Action:
    def stream(held: HeldRequests) -> None:
        with Stream(held.server) as opened:
            opened.send("reports", {"X": np.array(values, np.int32)})
            replies = list(opened.replies())
        assert len(replies) == len(values)
        assert isinstance(replies[-1], Refusal) if -1 in values else True

    return stream


def a_dead_worker(held: HeldRequests) -> None:
    failed = held.hold("obeys")
    victim = int(held.notes.read("holding"))
    assert victim in {worker.pid for worker in workers_of(held.server)}
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(Refusal, match="is started again"):
        failed.result(TIMEOUT_S)
    held.notes.remove("holding")
    held.ask("obeys", X)


ENDS: list[tuple[Action, str, Counter[str]]] = [
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
    held: HeldRequests, end: Action, model: str, expected: Counter[str]
) -> None:
    before = counts(held.server, model)
    end(held)
    assert counts(held.server, model) - before == expected


def test_what_waits_for_a_model_that_is_unloaded_is_answered(held: HeldRequests) -> None:
    first = held.hold("leaves")
    waiting = held.wait_behind("leaves", X)
    with HttpEndpoint(held.server) as endpoint:
        endpoint.unload("leaves")
        held.fail("leaves", X, "'leaves' has no available versions")
        held.go_on(first, waiting)
        until(lambda: not any('model="leaves"' in name for name in samples(held.server)), "its metrics are left")
        endpoint.load("leaves")
    assert counts(held.server, "leaves") == Counter()

"""How long a request may wait: the model's limit, the request's own, and what happens when the time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from support.endpoints import HttpEndpoint
from support.held_requests import HOLD_ROW, OBEYS, ROW, HeldRequests, held_requests
from support.notes import Notes
from support.processes import under_way
from support.python_models import add_python_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# Shorter than any test takes to notice; a request that may wait so long has waited too long at once.
SHORT_US = 1000
EXPIRED = "Request timeout expired"

BATCHED = "max_batch_size: 1 dynamic_batching { %s }"
POLICY = "default_queue_policy { %s }"
MINUTE = "default_timeout_microseconds: 60000000 "
MODELS = {
    "overridable": POLICY % (MINUTE + "allow_timeout_override: true"),
    "fixed": POLICY % MINUTE,
    "endless": POLICY % "allow_timeout_override: true",
    "hasty": POLICY % "default_timeout_microseconds: 700000 allow_timeout_override: true",
    "plain": "",
    "levels": "priority_levels: 2 default_priority_level: 2 "
    "priority_queue_policy { key: 1 value { default_timeout_microseconds: 1000 } }",
    "late": POLICY % (MINUTE + "allow_timeout_override: true timeout_action: DELAY"),
}

# Says in which order it was asked, by the values of X.
TURN = "note(f'turn {len(list(NOTES.glob(\"turn *\")))} {x}')"
ORDERED = OBEYS.replace("return [", f"{TURN}\n        return [")

# Asks a model that is held, and is ready to wait for the time that its own request was.
CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        request = requests[0]
        call = pb_utils.InferenceRequest(
            model_name="overridable", requested_output_names=["Y"], timeout=request.timeout(),
            inputs=[pb_utils.Tensor("X", given(request))])
        reply = call.exec()
        if reply.has_error():
            raise pb_utils.TritonModelException(reply.error().message())
        return [pb_utils.InferenceResponse(reply.output_tensors())]
"""

CHAIN = """
platform: "ensemble" max_batch_size: 1
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [ { model_name: "overridable" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for name, batching in MODELS.items():
        add_python_model(repository, name, ORDERED, config=BATCHED % batching)
    add_python_model(repository, "calls", CALLS, config="max_batch_size: 1")
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    return serve_module(repository, environment=notes.environment)


@pytest.fixture
def held(server: ServerProcess, notes: Notes) -> Iterator[HeldRequests]:
    with held_requests(server, notes) as made:
        yield made


@pytest.mark.parametrize(
    ("model", "timeout_us", "kind"),
    [
        ("overridable", SHORT_US, "http"),
        ("overridable", SHORT_US, "grpc"),
        ("hasty", None, "http"),
        ("hasty", 60_000_000, "grpc"),  # a longer time than the model's own does not count
    ],
)
def test_a_request_waits_no_longer_than_it_may(
    held: HeldRequests, model: str, timeout_us: int | None, kind: str
) -> None:
    first = held.hold(model, HOLD_ROW)
    held.fail(model, ROW, f"UNAVAILABLE: {EXPIRED}", timeout_us=timeout_us, kind=kind)
    held.go_on(first)  # what executes already has no limit


@pytest.mark.parametrize(
    ("model", "timeout_us"),
    [
        ("overridable", None),
        ("overridable", 0),
        ("fixed", SHORT_US),
        ("endless", SHORT_US),  # where the model has no limit, a request cannot have one either
        ("plain", SHORT_US),
        ("late", SHORT_US),
    ],
)
def test_a_time_out_that_does_not_count_is_no_time_out(held: HeldRequests, model: str, timeout_us: int | None) -> None:
    first = held.hold(model, HOLD_ROW)
    waiting = held.wait_behind(model, ROW, timeout_us=timeout_us)
    threading.Event().wait(20 * SHORT_US / 1e6)
    held.go_on(first, waiting)


def test_who_has_waited_too_long_goes_behind_all_others_and_stays(held: HeldRequests) -> None:
    first = held.hold("late", HOLD_ROW)
    late = [held.wait_behind("late", {"X": [[value]]}, timeout_us=SHORT_US) for value in (1, 2)]
    threading.Event().wait(20 * SHORT_US / 1e6)
    others = [held.wait_behind("late", {"X": [[value]]}) for value in (3, 4)]
    held.go_on(first, *late, *others)
    turns = sorted(name for name in held.notes.names() if name.startswith("turn"))
    assert turns == ["turn 0 7", "turn 1 3", "turn 2 4", "turn 3 1", "turn 4 2"]


def test_a_level_has_a_limit_of_its_own(held: HeldRequests) -> None:
    first = held.hold("levels", HOLD_ROW)
    waiting = held.wait_behind("levels", ROW)
    held.fail("levels", ROW, EXPIRED, priority=1)
    held.go_on(first, waiting)


def test_a_step_and_a_call_wait_as_long_as_their_callers_may(held: HeldRequests) -> None:
    first = held.hold("overridable", HOLD_ROW)
    held.fail("chain", ROW, f"in ensemble 'chain', {EXPIRED}", timeout_us=SHORT_US)
    held.fail("calls", ROW, EXPIRED, timeout_us=SHORT_US)
    held.go_on(first)


def test_the_deadline_of_a_call_that_executes_is_its_callers_alone(held: HeldRequests) -> None:
    with HttpEndpoint(held.server) as endpoint:
        before = endpoint.statistics("plain")["inference_stats"]
        # One that a busy machine has no time to execute before its deadline is none.
        while "holding" not in held.notes.names():
            call = held.call("plain", HOLD_ROW, timeout_s=0.5)
            assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert under_way(held.server, "plain") == 1
        held.go_on()
        held.ask("plain", ROW)
        after = endpoint.statistics("plain")["inference_stats"]
    assert after["success"]["count"] - before["success"]["count"] == 2

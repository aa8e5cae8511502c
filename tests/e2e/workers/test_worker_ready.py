"""A Python model has a say in whether it is ready: `is_ready`, asked through both endpoints."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, HttpEndpoint
from support.notes import Notes
from support.python_models import add_python_model, instances
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]

# Is ready while there is a note that says so.
SAYS = """
class TritonPythonModel:
    {define} is_ready(self):
        note(f"asked {{os.getpid()}}")
        return (NOTES / "ready").exists()

    def execute(self, requests):
        note("executing")
        if given(requests[0])[0] == 0:
            await_note("go on")
        return [answer(Y=given(request)) for request in requests]
"""

# Questions that come when an earlier one has been open for too long.
LATER = 5

# Waits for a note before it says so.
WAITS = """
class TritonPythonModel:
    def is_ready(self):
        note("asked", os.getpid())
        await_note("go on")
        return True

    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""


def server_is_ready(server: ServerProcess) -> bool:
    with HttpEndpoint(server) as endpoint:
        return endpoint.call("GET", "/v2/health/ready")[0].status == 200


@pytest.mark.parametrize("define", ["def", "async def"])
@pytest.mark.parametrize("kind", ENDPOINTS)
def test_a_model_is_ready_when_it_says_so(repository: Path, start: Start, notes: Notes, kind: str, define: str) -> None:
    add_python_model(repository, "says", SAYS.format(define=define), config=instances(2))
    server = start()
    with ENDPOINTS[kind](server) as endpoint:
        assert not endpoint.is_ready("says")
        assert not server_is_ready(server)
        assert list(endpoint.ask("says", {"X": [1]})["Y"]) == [1]  # it answers all the same, as in Triton
        notes.write("ready")
        # A check during an earlier one gets the answer to the earlier one.
        until(lambda: endpoint.is_ready("says"))
        until(lambda: server_is_ready(server))
        notes.remove("ready")
        until(lambda: not endpoint.is_ready("says", "1"))


CHAIN = """
platform: "ensemble"
input {{ name: "X" data_type: TYPE_INT32 dims: [ -1 ] }}
output {{ name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }}
ensemble_scheduling {{ step {{
  model_name: "{model}" model_version: -1 input_map {{ key: "X" value: "X" }} output_map {{ key: "Y" value: "Y" }}
}} }}
"""


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_an_ensemble_is_ready_when_its_models_say_so(repository: Path, start: Start, notes: Notes, kind: str) -> None:
    add_python_model(repository, "says", SAYS.format(define="def"))
    for name, model in (("inner", "says"), ("outer", "inner")):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(CHAIN.format(model=model))
    server = start("--strict-readiness=false")
    with ENDPOINTS[kind](server) as endpoint:
        assert not endpoint.is_ready("outer")
        assert notes.names()
        notes.write("ready")
        until(lambda: endpoint.is_ready("outer"))
        notes.remove("ready")
        until(lambda: not endpoint.is_ready("inner"))


def test_a_lenient_server_does_not_ask(repository: Path, start: Start, notes: Notes) -> None:
    add_python_model(repository, "says", SAYS.format(define="def"))
    server = start("--strict-readiness=false")
    assert server_is_ready(server)
    assert not notes.names()


def test_a_worker_answers_readiness_while_it_executes(
    repository: Path, start: Start, notes: Notes, ask_later: Callable[..., object]
) -> None:
    add_python_model(repository, "says", SAYS.format(define="def"))
    notes.write("ready")
    server = start()
    with HttpEndpoint(server) as endpoint, HttpEndpoint(server) as busy:
        ask_later(busy, "says", {"X": [0]})
        notes.read("executing")
        until(lambda: endpoint.is_ready("says"))  # on a busy machine the answer may come too late at first
        notes.write("go on")


def test_one_model_asks_for_another(repository: Path, start: Start, notes: Notes) -> None:
    asks = """
    class TritonPythonModel:
        def execute(self, requests):
            return [answer(Y=np.array([pb_utils.is_model_ready("says")], np.int32)) for _ in requests]
    """
    add_python_model(repository, "says", SAYS.format(define="def"))
    add_python_model(repository, "asks", asks)
    server = start()
    with HttpEndpoint(server) as endpoint:
        assert list(endpoint.ask("asks", {"X": [0]})["Y"]) == [0]
        notes.write("ready")
        until(lambda: list(endpoint.ask("asks", {"X": [0]})["Y"]) == [1])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return 1", "is_ready() must return a boolean value, found type '<class 'int'>'."),
        ("raise ValueError('no weights')", "is_ready() raised ValueError: no weights"),
    ],
)
def test_a_check_that_fails_means_not_ready_and_says_why(repository: Path, start: Start, body: str, text: str) -> None:
    source = f"""
    class TritonPythonModel:
        def is_ready(self):
            {body}

        def execute(self, requests):
            return [answer(Y=given(request)) for request in requests]
    """
    add_python_model(repository, "broken", source)
    server = start()
    with HttpEndpoint(server) as endpoint:
        assert not endpoint.is_ready("broken")
        assert not endpoint.is_ready("broken")
    server.wait_for_output("the model is not ready")
    assert server.output.count(text) == 1


def test_a_check_that_takes_too_long_means_not_ready_until_it_has_ended(
    repository: Path, start: Start, notes: Notes
) -> None:
    add_python_model(repository, "waits", WAITS)
    server = start()
    with HttpEndpoint(server) as endpoint, ThreadPoolExecutor(4) as pool, ExitStack() as stack:
        endpoints = [stack.enter_context(HttpEndpoint(server)) for _ in range(4)]
        began = time.monotonic()
        assert not any(pool.map(lambda one: one.is_ready("waits"), endpoints))
        assert time.monotonic() - began > 4.9
        began = time.monotonic()
        assert not any(endpoint.is_ready("waits") for _ in range(LATER))
        # No further check waits for an answer that earlier ones have waited for.
        assert time.monotonic() - began < 4 * LATER
        server.wait_for_output("has not said within 5 s whether its model is ready")
        notes.write("go on")
        until(lambda: endpoint.is_ready("waits"))
    assert server.output.count("has not said within 5 s") == 1


def test_a_process_that_ends_during_a_check_is_not_waited_for(
    repository: Path, start: Start, notes: Notes, endpoint_kind: str
) -> None:
    add_python_model(repository, "waits", WAITS)
    server = start()
    with ENDPOINTS[endpoint_kind](server) as endpoint, ThreadPoolExecutor(1) as pool:
        checked = pool.submit(endpoint.is_ready, "waits")
        os.kill(int(notes.read("asked")), signal.SIGKILL)
        assert not checked.result(60)
        server.wait_for_output("takes requests again")
        assert "has not said within 5 s" not in server.output
        notes.write("go on")
        until(lambda: endpoint.is_ready("waits"))


@pytest.fixture(params=ENDPOINTS)
def endpoint_kind(request: pytest.FixtureRequest) -> str:
    """Either endpoint."""
    return str(request.param)


@pytest.mark.slow("the answer that a stopping server finishes comes when the check is given up, after five seconds")
def test_a_worker_leaves_although_its_check_hangs(repository: Path, start: Start, notes: Notes) -> None:
    add_python_model(repository, "waits", WAITS)
    server = start()
    with HttpEndpoint(server) as endpoint, ThreadPoolExecutor(1) as pool:
        checked = pool.submit(endpoint.is_ready, "waits")
        notes.read("asked")
        assert server.stop() == 0
        checked.exception(60)

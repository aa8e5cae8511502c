"""A worker that dies fails what it was executing and nothing else, and is back soon."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Endpoint, HttpEndpoint, Refusal, Reply
from support.notes import Notes
from support.processes import is_gone, metric, workers_of
from support.python_models import add_python_model, instances, parameter
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
AskLater = Callable[..., Future[Reply]]

MEMORY_LIMIT_BYTES = 400 << 20

# HOW says in which way to fail; anything else answers the process id.
MORTAL = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            getattr(self, word(request), self.live)()
        return [answer(PID=np.array([os.getpid()], np.int64)) for _ in requests]

    def live(self):
        pass

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(3600)

    def exits(self):
        os._exit(3)

    def crashes(self):
        ctypes.string_at(0)

    def aborts(self):
        os.abort()

    def stops(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def hangs(self):
        while True:
            pass

    def grows(self):
        self.piece = np.ones(LIMIT // 6)
        time.sleep(3600)
"""
MORTAL = MORTAL.replace("LIMIT", str(MEMORY_LIMIT_BYTES))
SIGNATURE = "HOW: BYTES[1] -> PID: INT64[1]"

# Long enough for what does not stall, on a machine that has other things to do.
STALLS = parameter("EXECUTE_TIMEOUT_SECONDS", "7.5")
LIMITS = {"stops": STALLS, "hangs": STALLS, "grows": parameter("MAX_WORKER_MEMORY_BYTES", MEMORY_LIMIT_BYTES)}

# What happened, as the error and the log say it.
FAULTS = {
    "killed": r"was ended by signal 9 \(SIGKILL: killed, perhaps for want of memory\)",
    "exits": r"left with exit code 3",
    "crashes": r"was ended by signal 11 \(SIGSEGV: segmentation fault\)",
    "aborts": r"was ended by signal 6 \(SIGABRT: aborted\)",
    "stops": r"was ended because one execution took longer than 7\.5 s",
    "hangs": r"was ended because one execution took longer than 7\.5 s",
    "grows": rf"was ended because it used \d+ bytes of memory, more than the {MEMORY_LIMIT_BYTES} that are allowed",
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    for how in FAULTS:
        add_python_model(repository, how, MORTAL, signature=SIGNATURE, config=LIMITS.get(how, ""))
    yield serve_module(repository, "--disable-auto-complete-config")


def pid_of(endpoint: Endpoint, model: str) -> int:
    return int(endpoint.ask(model, {"HOW": ["live"]})["PID"][0])


@pytest.mark.slow("waits for back-offs of restarts")
@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_is_reported_counted_and_survived(server: ServerProcess, endpoint: Endpoint, how: str) -> None:
    first = pid_of(endpoint, how)
    before = endpoint.statistics(how)["inference_stats"]
    failures = metric(server, "nv_inference_request_failure", model=how, reason="BACKEND")
    restarts = metric(server, "alipes_worker_restarts_total", model=how)
    lines = len(re.findall(FAULTS[how], server.output))
    with pytest.raises(Refusal) as refusal:
        endpoint.ask(how, {"HOW": [how]})
    assert refusal.value.code == "UNAVAILABLE"
    expected = f"worker process of '{how}_0_0' {FAULTS[how]} while it was executing this request; it is started again"
    assert re.fullmatch(expected, refusal.value.text), refusal.value.text
    # The next one waits for the new process.
    second = pid_of(endpoint, how)
    assert second != first
    until(lambda: is_gone(first))
    assert endpoint.is_ready(how)
    assert endpoint.index(how)["state"] == "READY"
    until(lambda: len(re.findall(FAULTS[how], server.output)) > lines)
    after = endpoint.statistics(how)["inference_stats"]
    assert after["fail"]["count"] - before["fail"].get("count", 0) == 1
    assert after["success"]["count"] - before["success"]["count"] == 1
    assert metric(server, "nv_inference_request_failure", model=how, reason="BACKEND") == failures + 1
    assert metric(server, "alipes_worker_restarts_total", model=how) == restarts + 1


GATED_START = """
    def initialize(self, args):
        note(f"start {os.getpid()}")
        if len(list(NOTES.glob("start *"))) > INSTANCES:
            await_note("go")
"""


def mortal(number_of_instances: int = 1) -> str:
    """A model whose starts after the first ones wait for a note."""
    return MORTAL + GATED_START.replace("INSTANCES", str(number_of_instances))


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_requests_wait_for_the_new_process_and_the_state_says_so(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater, protocol: str
) -> None:
    add_python_model(repository, "mortal", mortal(), signature=SIGNATURE)
    server = start()
    with ENDPOINTS[protocol](server) as endpoint, ENDPOINTS[protocol](server) as other:
        with pytest.raises(Refusal):
            endpoint.ask("mortal", {"HOW": ["killed"]})
        until(lambda: len(_pids(notes, "start")) == 2)
        assert not endpoint.is_ready("mortal")
        index = endpoint.index("mortal")
        assert index["state"] == "UNAVAILABLE"
        assert "started again" in index["reason"]
        waits = ask_later(other, "mortal", {"HOW": ["live"]})
        until(lambda: metric(server, "nv_inference_pending_request_count", model="mortal") == 1)
        notes.write("go")
        assert waits.result()["PID"][0] > 0
        assert endpoint.is_ready("mortal")
        assert endpoint.index("mortal")["state"] == "READY"
        statistics = endpoint.statistics("mortal")
        assert statistics["inference_stats"]["success"]["count"] == 1
        assert statistics["inference_stats"]["fail"]["count"] == 1
    server.wait_for_output("mortal_0_0.*takes requests again")


# Executes until the test releases it; then fails in the way that the request names.
HELD = mortal(2).replace(
    "    def live(self):\n        pass\n",
    """
    def live(self):
        if not (NOTES / "all go on").exists():
            note(f"held {os.getpid()}")
            await_note("all go on")

    def held_then_killed(self):
        note(f"held {os.getpid()}")
        await_note("die")
        self.killed()
""",
)


def test_what_a_dead_worker_had_not_begun_runs_elsewhere(
    repository: Path, start: Start, notes: Notes, ask_later: AskLater
) -> None:
    add_python_model(repository, "mortal", HELD, signature=SIGNATURE, config=instances(2))
    server = start()
    with ExitStack() as stack:
        endpoints = [stack.enter_context(ENDPOINTS[protocol](server)) for protocol in [*ENDPOINTS] * 6]
        doomed = ask_later(endpoints[0], "mortal", {"HOW": ["held_then_killed"]})
        until(lambda: len(_held(notes)) == 1)
        (victim,) = _held(notes)
        # One runs on the other instance, the rest waits behind the two.
        others = [ask_later(endpoint, "mortal", {"HOW": ["live"]}) for endpoint in endpoints[1:]]
        until(lambda: len(_held(notes)) == 2)
        (survivor,) = _held(notes) - {victim}
        notes.write("die")
        with pytest.raises(Refusal, match="signal 9"):
            doomed.result()
        notes.write("all go on")
        # The dead one's successor is kept from starting, so the survivor answers them all.
        assert {int(other.result()["PID"][0]) for other in others} == {survivor}
        assert endpoints[0].is_ready("mortal")
        notes.write("go")
        until(lambda: len(workers_of(server)) == 2)
        statistics = endpoints[0].statistics("mortal")["inference_stats"]
        assert (statistics["success"]["count"], statistics["fail"]["count"]) == (len(others), 1)


def _held(notes: Notes) -> set[int]:
    return _pids(notes, "held")


def _pids(notes: Notes, what: str) -> set[int]:
    """The processes that left such a note."""
    return {int(name.split()[1]) for name in notes.names() if name.startswith(f"{what} ")}


FALLS_BACK = (
    MORTAL
    + """
    def initialize(self, args):
        if (NOTES / "broken").exists():
            os._exit(7)
"""
)


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_failing_restarts_back_off(repository: Path, start: Start, notes: Notes, protocol: str) -> None:
    add_python_model(repository, "mortal", FALLS_BACK, signature=SIGNATURE)
    server = start()
    with ENDPOINTS[protocol](server) as endpoint:
        notes.write("broken")
        with pytest.raises(Refusal, match="exit code 3"):
            endpoint.ask("mortal", {"HOW": ["exits"]})
        for pause in ("0.1", "0.2", "0.4"):
            server.wait_for_output(rf"mortal_0_0.*left with exit code 7.*{re.escape(pause)} s")
        with pytest.raises(Refusal) as refusal:
            endpoint.ask("mortal", {"HOW": ["live"]})
        assert refusal.value.code == "UNAVAILABLE"
        assert "could not be started again" in refusal.value.text
        assert not endpoint.is_ready("mortal")
        notes.remove("broken")
        until(lambda: endpoint.is_ready("mortal"))
        assert endpoint.ask("mortal", {"HOW": ["live"]})["PID"][0] > 0


def test_a_fault_between_two_requests_fails_none(server: ServerProcess, endpoint: Endpoint) -> None:
    first = pid_of(endpoint, "exits")
    os.kill(first, signal.SIGKILL)
    until(lambda: is_gone(first))
    assert pid_of(endpoint, "exits") != first


def test_other_models_do_not_notice(server: ServerProcess) -> None:
    with HttpEndpoint(server) as endpoint:
        neighbour = pid_of(endpoint, "aborts")
        for how in ("killed", "exits", "crashes"):
            with pytest.raises(Refusal):
                endpoint.ask(how, {"HOW": [how]})
            assert pid_of(endpoint, "aborts") == neighbour

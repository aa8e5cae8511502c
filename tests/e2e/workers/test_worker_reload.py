"""Loading, reloading and unloading Python models while the server runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Endpoint, HttpEndpoint, Refusal
from support.notes import Notes
from support.processes import is_gone, workers_of
from support.python_models import ECHO, WHO, add_python_model, parameter, write_model
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]

RELOADS = 5
CALLERS = 3

SAYS = """
from factor import FACTOR

class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request) * FACTOR + 0) for request in requests]

    def finalize(self):
        note(f"finalized {FACTOR}")
"""


GIVES = """
class TritonPythonModel:
    def execute(self, requests):
        if given(requests[0])[0] < 0:
            note("begun")
            await_note("go")
        return [answer(Y=np.array([FACTOR], np.int32)) for _ in requests]
"""


@pytest.fixture
def model(repository: Path) -> Path:
    """A model with a module beside its file."""
    folder = add_python_model(repository, "says", SAYS)
    (folder / "1" / "factor.py").write_text("FACTOR = 2\n")
    return folder


@pytest.fixture
def server(model: Path, start: Start) -> ServerProcess:
    return start("--model-control-mode=explicit", "--load-model=says")


def test_a_reload_picks_up_the_file_and_the_modules_beside_it(
    server: ServerProcess, model: Path, endpoint: Endpoint
) -> None:
    assert endpoint.ask("says", {"X": [10]})["Y"].tolist() == [20]
    # Same size, and the same second or nearly so: what a compiled file would be taken for fresh by.
    (model / "1" / "factor.py").write_text("FACTOR = 3\n")
    endpoint.load("says")
    assert endpoint.ask("says", {"X": [10]})["Y"].tolist() == [30]
    write_model(model / "1" / "model.py", SAYS.replace("+ 0", "+ 1"))
    endpoint.load("says")
    assert endpoint.ask("says", {"X": [10]})["Y"].tolist() == [31]
    assert not list(model.rglob("__pycache__"))


def test_an_unload_finalizes_the_model_and_ends_its_process(
    server: ServerProcess, endpoint: Endpoint, notes: Notes
) -> None:
    (worker,) = workers_of(server)
    endpoint.unload("says")
    notes.read("finalized 2")
    until(lambda: is_gone(worker.pid))
    assert not endpoint.is_ready("says")
    with pytest.raises(Refusal):
        endpoint.ask("says", {"X": [1]})


def test_a_failed_reload_leaves_the_old_model_serving(server: ServerProcess, model: Path, endpoint: Endpoint) -> None:
    (worker,) = workers_of(server)
    (model / "1" / "model.py").write_text("this is no Python\n")
    with pytest.raises(Refusal, match="SyntaxError"):
        endpoint.load("says")
    assert endpoint.ask("says", {"X": [10]})["Y"].tolist() == [20]
    until(lambda: [process.pid for process in workers_of(server)] == [worker.pid])


def test_a_reload_loses_no_request_and_keeps_the_one_that_runs(repository: Path, start: Start, notes: Notes) -> None:
    folder = add_python_model(repository, "says", "FACTOR = 1\n" + GIVES)
    server = start("--model-control-mode=explicit", "--load-model=says")
    finished = threading.Event()
    failures: list[BaseException] = []

    def ask(mine: list[int]) -> None:
        try:
            with HttpEndpoint(server) as endpoint:
                while not finished.is_set():
                    mine.append(int(endpoint.ask("says", {"X": [1]})["Y"][0]))
                mine.append(int(endpoint.ask("says", {"X": [1]})["Y"][0]))
        except BaseException as error:
            failures.append(error)

    old: list[int] = []

    def ask_the_old() -> None:
        with HttpEndpoint(server) as endpoint:
            old.append(int(endpoint.ask("says", {"X": [-1]})["Y"][0]))

    held = threading.Thread(target=ask_the_old)
    held.start()
    notes.read("begun")
    answers: list[list[int]] = [[] for _ in range(CALLERS)]
    callers = [threading.Thread(target=ask, args=(mine,)) for mine in answers]
    with HttpEndpoint(server) as control:
        write_model(folder / "1" / "model.py", "FACTOR = 2\n" + GIVES)
        control.load("says")
        for caller in callers:
            caller.start()
        for number in range(3, RELOADS + 3):
            write_model(folder / "1" / "model.py", f"FACTOR = {number}\n" + GIVES)
            later = (folder / "1" / "model.py").stat().st_mtime_ns + number * 10**9
            os.utime(folder / "1" / "model.py", ns=(later, later))
            control.load("says")
    finished.set()
    for caller in callers:
        caller.join()
    assert failures == []
    for mine in answers:
        assert mine == sorted(mine)
        assert mine[-1] == RELOADS + 2
    assert old == []
    notes.write("go")
    held.join()
    assert old == [1]
    until(lambda: len(workers_of(server)) == 1)


def test_a_model_that_does_not_finish_is_ended(repository: Path, start: Start, notes: Notes) -> None:
    source = ECHO + "    def finalize(self):\n        note('begun')\n        await_note('never')\n"
    add_python_model(repository, "stays", source, config=parameter("STOP_TIMEOUT_SECONDS", "2"))
    server = start("--model-control-mode=explicit", "--load-model=stays")
    (worker,) = workers_of(server)
    with HttpEndpoint(server) as endpoint:
        endpoint.unload("stays")
        notes.read("begun")
        until(lambda: is_gone(worker.pid))
        assert server.stop() == 0


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_an_exception_in_finalize_is_logged_and_hinders_nothing(repository: Path, start: Start, protocol: str) -> None:
    source = WHO + "    def finalize(self):\n        raise ValueError('no end')\n"
    add_python_model(repository, "who", source, signature="X: INT32[1] -> PID: INT64[1]")
    server = start("--model-control-mode=explicit", "--load-model=who")
    with ENDPOINTS[protocol](server) as endpoint:
        first = endpoint.ask("who", {"X": [1]})["PID"][0]
        endpoint.unload("who")
        server.wait_for_output("who.*ValueError: no end")
        until(lambda: is_gone(int(first)))
        endpoint.load("who")
        assert endpoint.ask("who", {"X": [1]})["PID"][0] != first

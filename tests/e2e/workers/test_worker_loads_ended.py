"""Loads of Python models that end before their time: what they began ends with them, and other models load."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from alipes.model_load import SUPERSEDED
from support.endpoints import Endpoint, HttpEndpoint, Refusal
from support.notes import Notes
from support.processes import is_gone
from support.python_models import ECHO, add_python_model, instances, parameter
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]
Later = Callable[..., Future[str]]

EXPLICIT = ("--model-control-mode=explicit", "--model-load-thread-count=1")

# Each leaves the number of its process, and never ends by itself.
HANGS = """        note("pid", os.getpid())
        await_note("never")
"""
IN_INITIALIZE = f"{ECHO}    def initialize(self, args):\n{HANGS}"
IN_COMPLETION = f"{ECHO}    @staticmethod\n    def auto_complete_config(config):\n{HANGS}"
# The second instance has loaded when the first one hangs.
IN_ONE_INSTANCE = f"""{ECHO}    def initialize(self, args):
        if args["model_instance_name"].endswith("1"):
            return note("other", os.getpid())
        await_note("other")
{HANGS}"""
IN_INTERPRETER = "an interpreter that hangs"
PLACES = {"initialize": IN_INITIALIZE, "completion": IN_COMPLETION, "instance": IN_ONE_INSTANCE, "python": ""}


@pytest.fixture
def later() -> Iterator[Later]:
    """Loads a model on another thread: ``later(endpoint, model)`` gives the error, or nothing, in the future."""

    def outcome(endpoint: Endpoint, model: str) -> str:
        try:
            endpoint.load(model)
        except Refusal as refusal:
            return f"{refusal.code}: {refusal.text}"
        return ""

    with ThreadPoolExecutor(8) as pool:
        yield lambda endpoint, model: pool.submit(outcome, endpoint, model)


def add_hanging_model(repository: Path, notes: Notes, place: str) -> None:
    if place != "python":
        config = instances(2) if place == "instance" else ""
        add_python_model(repository, "m", PLACES[place], config=config)
        return
    program = repository.parent / "python"
    program.write_text(
        f"#!/bin/sh\necho $$ > {notes.folder}/.pid; mv {notes.folder}/.pid {notes.folder}/pid\nsleep 600\n"
    )
    program.chmod(0o755)
    add_python_model(repository, "m", ECHO, config=parameter("EXECUTION_ENV_PATH", program))


def pids(notes: Notes) -> list[int]:
    """The processes of the model, once they are there."""
    notes.read("pid")
    return [int(notes.read(name)) for name in ("pid", "other") if name in notes.names()]


@pytest.mark.parametrize("place", PLACES)
def test_an_unload_ends_a_load_with_its_processes(
    repository: Path, start: Start, notes: Notes, later: Later, place: str
) -> None:
    add_hanging_model(repository, notes, place)
    add_python_model(repository, "n")
    server = start(*EXPLICIT)
    with HttpEndpoint(server) as one, HttpEndpoint(server) as other:
        other.load("n")
        load = later(one, "m")
        left = pids(notes)
        other.unload("n")
        assert not other.is_ready("n"), "an unload waits for no load of another model"
        other.unload("m")
        assert load.result() == f"INVALID_ARGUMENT: load failed for model 'm': {SUPERSEDED}\n"
        until(lambda: all(is_gone(pid) for pid in left), "a process of the model stays")
        other.load("n")
        assert other.ask("n", {"X": [7]})["Y"].tolist() == [7]
        assert other.index("m") == {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}
    assert server.stop() == 0


@pytest.mark.parametrize("place", PLACES)
def test_a_load_whose_time_is_up_ends_with_its_processes(
    repository: Path, start: Start, notes: Notes, later: Later, place: str
) -> None:
    add_hanging_model(repository, notes, place)
    server = start(*EXPLICIT, "--model-load-timeout-secs=3")
    with HttpEndpoint(server) as endpoint:
        text = "Unavailable: the load took longer than the 3 s that --model-load-timeout-secs allows"
        assert later(endpoint, "m").result() == (
            f"INVALID_ARGUMENT: load failed for model 'm': version 1 is at UNAVAILABLE state: {text};\n"
        )
        assert endpoint.index("m") == {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": text}
        if "pid" in notes.names():  # a busy machine may not have come so far
            left = pids(notes)
            until(lambda: all(is_gone(pid) for pid in left), "a process of the model stays")
        process = psutil.Process(server.process.pid)
        until(lambda: process.children(recursive=True) == [])
    assert server.stop() == 0


def test_a_folder_that_goes_ends_the_load_of_its_model(repository: Path, start: Start, notes: Notes) -> None:
    repository.mkdir(exist_ok=True)
    server = start("--model-control-mode=poll", "--repository-poll-secs=1")
    add_hanging_model(repository, notes, "initialize")
    left = pids(notes)
    shutil.rmtree(repository / "m")
    until(lambda: all(is_gone(pid) for pid in left), "a process of the model stays")
    assert server.stop() == 0


def test_further_instances_that_hang_leave_what_serves(
    repository: Path, start: Start, notes: Notes, later: Later
) -> None:
    folder = add_python_model(repository, "m", IN_ONE_INSTANCE.replace('endswith("1")', 'endswith("0")'))
    server = start(*EXPLICIT)
    with HttpEndpoint(server) as one, HttpEndpoint(server) as other:
        one.load("m")
        config = folder / "config.pbtxt"
        config.write_text(config.read_text().replace("count: 1", "count: 2"))
        load = later(one, "m")
        (hanging, serving) = pids(notes)
        assert other.ask("m", {"X": [7]})["Y"].tolist() == [7]
        other.unload("m")
        assert load.result() == f"INVALID_ARGUMENT: load failed for model 'm': {SUPERSEDED}\n"
        until(lambda: is_gone(hanging) and is_gone(serving))
    assert server.stop() == 0

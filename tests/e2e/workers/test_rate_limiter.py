"""Executions that take counted resources, and instances that are loaded and never used."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import HttpEndpoint, Refusal
from support.models import add_model
from support.notes import Notes
from support.processes import metric, workers_of
from support.python_models import add_python_model
from support.sequences import add_chain
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]

ON = "--rate-limit=execution_count"

# Fails where two of them execute at a time.
ALONE = """
class TritonPythonModel:
    def execute(self, requests):
        held = os.open(NOTES / "held", os.O_CREAT | os.O_EXCL)
        time.sleep(0.002)
        os.close(held)
        os.unlink(NOTES / "held")
        return [answer(Y=given(request)) for request in requests]
"""


def group(count: int = 1, resources: str = 'name: "R" count: 1', more: str = "") -> str:
    """An instance group whose executions take a resource."""
    limiter = f"rate_limiter {{ resources {{ {resources} }} }}"
    return f"instance_group {{ kind: KIND_CPU count: {count} {limiter} {more} }}\n"


def reasons(start: Start, *flags: str) -> list[str]:
    """Why models were not loaded."""
    with HttpEndpoint(start(*flags, all_load=False)) as endpoint:
        return [entry["reason"] for entry in endpoint.indexes() if entry.get("reason")]


def ask_all(server: ServerProcess, models: Sequence[str], times: int) -> list[int]:
    """Asks each model so many times, from several clients at once."""

    def ask(model: str) -> list[int]:
        with HttpEndpoint(server) as endpoint:
            return [int(endpoint.ask(model, {"X": [number]})["Y"][0]) for number in range(times)]

    with ThreadPoolExecutor(8) as pool:
        return [number for numbers in pool.map(ask, list(models) * 2) for number in numbers]


def test_processes_of_several_models_share_one_resource(repository: Path, start: Start) -> None:
    models = ["a", "b", "c"]
    for model in models:
        add_python_model(repository, model, ALONE, config=group(2))
    server = start(ON, "--rate-limit-resource=R:1")
    assert sorted(ask_all(server, models, 20)) == sorted(list(range(20)) * 6)


def test_engines_and_processes_take_turns(repository: Path, start: Start) -> None:
    add_python_model(repository, "process", ALONE, config=group(2))
    add_model(repository, "engine", config=f"max_batch_size: 8 {group(2)}")
    server = start(ON)
    x = {"X": np.ones((1, 2), np.float32)}

    def engine(_: int) -> float:
        with HttpEndpoint(server) as endpoint:
            return float(endpoint.ask("engine", x)["Y"][0][0])

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(engine, range(40))
        ask_all(server, ["process"], 20)
        assert set(answers) == {2.0}


def test_what_a_process_takes_is_free_when_it_dies(repository: Path, start: Start, notes: Notes) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            if given(requests[0])[0] < 0:
                note("begun", os.getpid())
                await_note("never")
            return [answer(Y=given(request)) for request in requests]
    """
    for model in ("dies", "waits"):
        add_python_model(repository, model, source, config=group())
    server = start(ON)
    with HttpEndpoint(server) as endpoint, HttpEndpoint(server) as other, ThreadPoolExecutor(2) as pool:
        lost = pool.submit(endpoint.ask, "dies", {"X": [-1]})
        notes.read("begun")
        waiting = pool.submit(other.ask, "waits", {"X": [5]})
        os.kill(int(notes.read("begun")), signal.SIGKILL)
        assert waiting.result()["Y"].tolist() == [5]
        with pytest.raises(Refusal, match="SIGKILL"):
            lost.result()


def test_more_than_there_is_is_refused(repository: Path, start: Start) -> None:
    add_model(repository, "m", config="max_batch_size: 8 " + group(resources='name: "R" count: 2'))
    (reason,) = reasons(start, ON, "--rate-limit-resource=R:1")
    assert 'Resource count for "R" is limited to 1 which will prevent scheduling' in reason


# Tells when it has begun, and waits to be let go on.
HELD = """
class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]

    def execute(self, requests):
        note("begun " + self.name)
        await_note("go " + self.name)
        return [answer(Y=given(request), ROWS=np.array([len(requests)] * given(request).size, np.int32))
                for request in requests]
"""
HELD_PORTS = "X: INT32[-1] -> Y: INT32[-1], ROWS: INT32[-1]"


@pytest.mark.parametrize("there", [3, 4])
def test_as_many_models_execute_as_there_is_of_what_they_take(
    repository: Path, start: Start, notes: Notes, there: int
) -> None:
    for model in ("a", "b"):
        config = group(resources='name: "R" count: 2')
        add_python_model(repository, model, HELD, signature=HELD_PORTS, config=config)
    server = start(ON, f"--rate-limit-resource=R:{there}")
    with HttpEndpoint(server) as first, HttpEndpoint(server) as second, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(first.ask, "a", {"X": [1]})]
        notes.read("begun a")
        asked.append(pool.submit(second.ask, "b", {"X": [2]}))
        if there == 4:
            notes.read("begun b")
        else:
            until(lambda: metric(server, "nv_inference_pending_request_count", model="b") == 1)
            assert notes.names() == {"begun a"}
        notes.write("go b")
        notes.write("go a")
        assert [one.result()["Y"].tolist() for one in asked] == [[1], [2]]


def test_what_waits_for_a_resource_becomes_one_batch(repository: Path, start: Start, notes: Notes) -> None:
    add_python_model(repository, "a", HELD, signature=HELD_PORTS, config=group())
    batching = "max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 1, 2, 3, 4 ] }\n"
    signature = HELD_PORTS.replace("-1", "1")
    add_python_model(repository, "b", HELD, signature=signature, config=batching + group(2))
    server = start(ON, "--rate-limit-resource=R:1")
    notes.write("go b")
    with ExitStack() as stack, ThreadPoolExecutor(5) as pool:
        clients = [stack.enter_context(HttpEndpoint(server)) for _ in range(5)]
        held = pool.submit(clients[0].ask, "a", {"X": [1]})
        notes.read("begun a")
        asked = [pool.submit(client.ask, "b", {"X": [[number]]}) for number, client in enumerate(clients[1:])]
        until(lambda: metric(server, "nv_inference_pending_request_count", model="b") == 4)
        notes.write("go a")
        held.result()
        assert [one.result()["ROWS"].tolist() for one in asked] == [[4]] * 4


def test_the_steps_of_an_ensemble_may_share_a_resource(repository: Path, start: Start) -> None:
    for model in ("a", "b"):
        add_python_model(repository, model, ALONE, signature="X: FP32[-1] -> Y: FP32[-1]", config=group(2))
    add_chain(repository, "chain", [("a", "X", "Y"), ("b", "X", "Y"), ("a", "X", "Y")], [-1], [-1])
    server = start(ON, "--rate-limit-resource=R:1")

    def ask(number: int) -> float:
        with HttpEndpoint(server) as endpoint:
            return float(endpoint.ask("chain", {"IN": np.array([number], np.float32)})["OUT"][0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(20))) == list(range(20))


def test_a_resource_is_global_to_all_models_or_to_none(repository: Path, start: Start) -> None:
    add_model(repository, "a", config=f"max_batch_size: 8 {group()}")
    add_model(repository, "b", config="max_batch_size: 8 " + group(resources='name: "R" count: 1 global: true'))
    (reason,) = reasons(start, ON, "--model-load-thread-count=1")
    assert 'Resource "R" is present as both global and device-specific resource' in reason


def test_without_the_limiter_resources_mean_nothing_and_the_log_says_so(repository: Path, start: Start) -> None:
    add_model(repository, "m", config=f"max_batch_size: 8 {group()}")
    server = start()
    with HttpEndpoint(server) as endpoint:
        assert endpoint.ask("m", {"X": np.ones((1, 2), np.float32)})["Y"].tolist() == [[2, 2]]
    assert "instance_group.rate_limiter of model 'm' does nothing" in server.output


def test_passive_instances_are_loaded_and_never_used(repository: Path, start: Start, notes: Notes) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.name = args["model_instance_name"]
            note(f"loaded {self.name}")

        def execute(self, requests):
            return [answer(Y=np.array([self.name], object)) for _ in requests]

        def finalize(self):
            note(f"finalized {self.name}")
    """
    groups = """
    instance_group [ { name: "active" count: 1 kind: KIND_CPU },
                     { name: "spare" count: 2 kind: KIND_CPU passive: true } ]
    """
    add_python_model(repository, "m", source, signature="X: INT32[-1] -> Y: BYTES[1]", config=groups)
    server = start("--model-control-mode=explicit", "--load-model=m")
    for name in ("active_0", "spare_0", "spare_1"):
        notes.read(f"loaded {name}")
    with HttpEndpoint(server) as endpoint:
        answers = {bytes(endpoint.ask("m", {"X": [number]})["Y"][0]) for number in range(20)}
        assert answers == {b"active_0"}
        endpoint.unload("m")
    for name in ("active_0", "spare_0", "spare_1"):
        notes.read(f"finalized {name}")
    until(lambda: not workers_of(server))


def test_an_onnx_model_may_have_passive_instances(repository: Path, start: Start) -> None:
    groups = "instance_group [ { kind: KIND_CPU count: 2 passive: true }, { kind: KIND_CPU count: 1 } ]"
    add_model(repository, "m", config=f"max_batch_size: 8 {groups}")
    with HttpEndpoint(start()) as endpoint:
        assert endpoint.ask("m", {"X": np.ones((1, 2), np.float32)})["Y"].tolist() == [[2, 2]]


def test_a_model_of_passive_instances_alone_is_refused(repository: Path, start: Start) -> None:
    add_model(repository, "m", config="max_batch_size: 8 instance_group { kind: KIND_CPU passive: true }")
    (reason,) = reasons(start)
    assert "instance groups of model m are all passive" in reason

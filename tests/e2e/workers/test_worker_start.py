"""Python models start side by side: none waits for another one's `initialize`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from support.endpoints import GrpcEndpoint, HttpEndpoint
from support.notes import Notes
from support.processes import workers_of
from support.python_models import ECHO, WHO, add_python_model, instances
from support.server import ServerProcess

Start = Callable[..., ServerProcess]

PID = "X: INT32[1] -> PID: INT64[1]"

MEETS = """
class TritonPythonModel:
    def initialize(self, args):
        note(args["model_instance_name"])
        for name in os.environ["MEET"].split(","):
            await_note(name)

    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""


def test_models_and_instances_initialize_at_the_same_time(repository: Path, start: Start) -> None:
    # Each waits for all others to have begun: one after the other, none would ever end.
    add_python_model(repository, "one", MEETS)
    add_python_model(repository, "two", MEETS, config=instances(2))
    server = start(environment={"MEET": "one_0_0,two_0_0,two_0_1"})
    assert len(workers_of(server)) == 3
    with HttpEndpoint(server) as endpoint:
        assert endpoint.ask("one", {"X": [1, 2]})["Y"].tolist() == [1, 2]
        assert endpoint.ask("two", {"X": [3]})["Y"].tolist() == [3]


def test_a_slow_start_holds_up_no_other_model(repository: Path, start: Start, notes: Notes) -> None:
    waits = ECHO + "    def initialize(self, args):\n        note('begun')\n        await_note('go')\n"
    add_python_model(repository, "slow", waits)
    add_python_model(repository, "quick")
    server = start("--model-control-mode=explicit")
    with HttpEndpoint(server) as endpoint, GrpcEndpoint(server) as other:
        load = threading.Thread(target=other.load, args=("slow",))
        load.start()
        try:
            notes.read("begun")
            endpoint.load("quick")
            assert endpoint.ask("quick", {"X": [7]})["Y"].tolist() == [7]
            assert not endpoint.is_ready("slow")
            assert endpoint.is_ready("quick")
        finally:
            notes.write("go")
            load.join()
        assert endpoint.ask("slow", {"X": [7]})["Y"].tolist() == [7]


def test_a_worker_inherits_folder_and_environment(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            facts = [os.getcwd(), os.environ["MARK"], sys.executable]
            return [answer(FACTS=np.array(facts, object)) for request in requests]
    """
    add_python_model(repository, "facts", source, signature="X: INT32[1] -> FACTS: BYTES[-1]")
    server = start(environment={"MARK": "a mark"})
    with HttpEndpoint(server) as endpoint:
        folder, mark, interpreter = (text.decode() for text in endpoint.ask("facts", {"X": [1]})["FACTS"])
    assert (folder, mark) == (str(Path.cwd()), "a mark")
    assert Path(interpreter).samefile(sys.executable)


def test_each_instance_is_a_process_of_its_own(repository: Path, start: Start, notes: Notes) -> None:
    # Both answer only once both execute.
    source = WHO.replace("return", "note(f'in {os.getpid()}'); await_note('go'); return")
    add_python_model(repository, "who", source, signature=PID, config=instances(2))
    server = start()
    pids = {process.pid for process in workers_of(server)}
    with HttpEndpoint(server) as endpoint, GrpcEndpoint(server) as other:
        answers: list[int] = []
        pending = [
            threading.Thread(target=lambda client=client: answers.append(client.ask("who", {"X": [1]})["PID"][0]))
            for client in (endpoint, other)
        ]
        for thread in pending:
            thread.start()
        for pid in pids:
            notes.read(f"in {pid}")
        notes.write("go")
        for thread in pending:
            thread.join()
    assert sorted(answers) == sorted(pids)
    assert len(pids) == 2

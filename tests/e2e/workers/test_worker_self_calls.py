"""Models that call themselves, and each other: served while instances are free, refused where nobody could answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from support.notes import Notes
from support.python_models import DECOUPLED, add_python_model, instances
from support.server import ServerProcess
from support.text_models import ask, stream
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

# Reads a path of models, calls the first of them with the rest, and gives the way that was taken. A word with a colon
# is for itself: it lets several executions wait for each other.
WANDERER = """
def call(model, rest):
    how = pb_utils.Tensor("HOW", np.array([rest], dtype=object))
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[how])


class TritonPythonModel:
    def execute(self, requests):
        return [self.one(word(request)) for request in requests]

    def one(self, path):
        first, _, rest = path.partition(" ")
        if first.startswith("here:"):
            note(first, os.getpid())
            await_note("go")
            first, _, rest = rest.partition(" ")
        if not first:
            return answer(OUT=np.array(["."], dtype=object))
        response = call(first, rest).exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        seen = response.output_tensors()[0].as_numpy()[0].decode()
        return answer(OUT=np.array([f"{first} {seen}"], dtype=object))
"""

# Calls a model several times at once and gives all answers.
GATHERER = """
class TritonPythonModel:
    async def execute(self, requests):
        return [await self.one(word(request)) for request in requests]

    async def one(self, path):
        model, _, count = path.partition(" ")
        if not count:
            return answer(OUT=np.array(["."], dtype=object))
        how = pb_utils.Tensor("HOW", np.array([""], dtype=object))
        call = lambda: pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[how])
        responses = await asyncio.gather(*[call().async_exec() for _ in range(int(count))])
        failed = [response.error().message() for response in responses if response.has_error()]
        return answer(OUT=np.array([failed[0] if failed else str(len(responses))], dtype=object))
"""

# Answers on a thread of its own, when its execution is over.
LATER = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.work, args=(request.get_response_sender(), word(request))).start()

    def work(self, sender, path):
        if path:
            model, _, rest = path.partition(" ")
            how = pb_utils.Tensor("HOW", np.array([rest], dtype=object))
            call = pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[how])
            responses = list(call.exec(decoupled=True))
            path = responses[0].error().message() if responses[0].has_error() else "called"
        sender.send(answer(OUT=np.array([path or "."], dtype=object)), FINAL)
"""

# Calls while it executes.
AT_ONCE = LATER.replace("threading.Thread(target=self.work, args=(", "self.work(").replace(")).start()", ")")

SEQUENCE = """
sequence_batching { max_sequence_idle_microseconds: 60000000 }
"""


def add(repository: Path, name: str, count: int, source: str = WANDERER, more: str = "") -> None:
    config = instances(count) + more
    add_python_model(repository, name, source, signature="HOW: BYTES[1] -> OUT: BYTES[1]", config=config)


def add_ensemble(repository: Path, name: str, model: str) -> None:
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f"""
        platform: "ensemble"
        input {{ name: "HOW" data_type: TYPE_STRING dims: 1 }}
        output {{ name: "OUT" data_type: TYPE_STRING dims: 1 }}
        ensemble_scheduling {{ step {{
            model_name: "{model}" model_version: -1
            input_map {{ key: "HOW" value: "HOW" }} output_map {{ key: "OUT" value: "OUT" }}
        }} }}
        """
    )


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add(repository, "four", 4)
    add(repository, "one", 1)
    add(repository, "two", 2)
    add(repository, "gather", 2, GATHERER)
    add(repository, "later", 1, LATER, DECOUPLED)
    add(repository, "at_once", 2, AT_ONCE, DECOUPLED)
    add(repository, "sequence", 2, WANDERER, SEQUENCE)
    add(repository, "ordered", 2, WANDERER, "dynamic_batching { preserve_ordering: true }\n")
    add_ensemble(repository, "around_two", "two")
    return serve_module(repository, environment=notes.environment)


def circle(*names: str) -> str:
    return f"the call would wait for itself: {' -> '.join(names)}"


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("four", "four four four"),
        ("two", "two"),
        ("one", "two"),
        ("two", "one two"),
        ("two", "around_two"),
        ("around_two", "two"),
        ("around_two", "around_two"),
        ("one", "two two"),
    ],
)
def test_a_call_is_served_while_an_instance_is_free(server: ServerProcess, model: str, path: str) -> None:
    for _ in range(3):
        assert ask(server, model, path) == (200, f"{path} .")


@pytest.mark.parametrize(
    ("model", "path", "names"),
    [
        ("four", "four four four four", ["four"] * 5),
        ("one", "one", ["one", "one"]),
        ("one", "two one", ["one", "two", "one"]),
        ("two", "two two", ["two", "two", "two"]),
        ("two", "around_two around_two", ["two", "two", "two"]),
        ("around_two", "around_two two", ["two", "two", "two"]),
        ("ordered", "ordered", ["ordered", "ordered"]),
    ],
)
def test_a_call_that_nobody_could_answer_is_refused(
    server: ServerProcess, model: str, path: str, names: list[str]
) -> None:
    for _ in range(3):
        status, text = ask(server, model, path)
        assert (status, text.count("would wait for itself")) == (500, 1)
        assert circle(*names) in text
    assert ask(server, model, "") == (200, ".")


def test_a_sequence_calls_no_model_whose_sequences_may_wait_for_it(server: ServerProcess) -> None:
    how = http_client.InferInput("HOW", [1], "BYTES")
    how.set_data_from_numpy(np.array(["sequence"], dtype=object))
    with http_client.InferenceServerClient(server.http) as client, pytest.raises(InferenceServerException) as refused:
        client.infer("sequence", [how], sequence_id=7, sequence_start=True, sequence_end=True)
    assert circle("sequence", "sequence") in str(refused.value)


def together(server: ServerProcess, notes: Notes, requests: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """The answers to requests that all execute before the first of them calls."""
    with ThreadPoolExecutor(len(requests)) as pool:
        paths = [(model, f"here:{number} {path}") for number, (model, path) in enumerate(requests)]
        answers = [pool.submit(ask, server, model, path) for model, path in paths]
        until(lambda: {f"here:{number}" for number in range(len(paths))} <= notes.names())
        notes.write("go")
        found = [answer.result() for answer in answers]
    for name in notes.names():
        notes.remove(name)
    return found


@pytest.mark.parametrize("times", range(3))
def test_of_requests_that_hold_every_instance_one_is_refused(server: ServerProcess, notes: Notes, times: int) -> None:
    answers = together(server, notes, [("four", "four")] * 4)
    refused = [text for status, text in answers if status != 200]
    assert [text.count(circle("four", "four")) for text in refused] == [1]
    assert sorted(text for status, text in answers if status == 200) == ["four ."] * 3


@pytest.mark.parametrize("times", range(3))
def test_of_two_models_that_call_each_other_one_is_refused(server: ServerProcess, notes: Notes, times: int) -> None:
    answers = together(server, notes, [("one", "two"), ("two", "one"), ("two", "one")])
    assert 1 <= sum(status != 200 for status, _ in answers) <= 2
    assert all("would wait for itself" in text for status, text in answers if status != 200)


@pytest.mark.slow("two hundred requests, most of which call")
def test_a_full_queue_of_callers_always_ends(server: ServerProcess) -> None:
    with ThreadPoolExecutor(24) as pool:
        paths = ["four", "", "four four", "two around_two", "one two"]
        answers = list(pool.map(lambda number: ask(server, "four", paths[number % len(paths)]), range(200)))
    for number, (status, text) in enumerate(answers):
        assert text == " ".join(filter(None, [paths[number % len(paths)], "."])) if status == 200 else "itself" in text
    assert any(status == 200 for status, _ in answers)
    assert ask(server, "four", "four four four") == (200, "four four four .")


def test_several_calls_at_once_of_a_model_by_itself(server: ServerProcess) -> None:
    assert ask(server, "gather", "gather 5") == (200, "5")
    assert ask(server, "gather", "one 5") == (200, "5")


def test_a_request_that_outlives_its_execution_holds_no_instance(server: ServerProcess) -> None:
    assert stream(server, "later", "later later") == ["called", "end"]


def test_a_decoupled_model_that_calls_while_it_executes_holds_its_instance(server: ServerProcess) -> None:
    (text, end) = stream(server, "at_once", "at_once")
    assert circle("at_once", "at_once") in text
    assert end == "end"
    assert stream(server, "at_once", "later") == ["called", "end"]

"""Response senders, and requests that a model forgets: every request ends, and says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.server import ServerProcess
from support.text_models import add_model, ask, stream, stream_to_end

FAILED = "Failed to process the request(s) for model '{}_0_0', message: "

ORDINARY = """
class TritonPythonModel:
    def execute(self, requests):
        if text(requests[0]) == "fork":
            return self.fork(requests)
        answers = [self.one(request) for request in requests]
        return answers[1:] if text(requests[0]) == "too few" else answers

    def fork(self, requests):
        child = os.fork()
        if child == 0:
            said = ""
            try:
                requests[0].get_response_sender().send(good("child"), FINAL)
            except pb_utils.TritonModelException as error:
                said = str(error)
            requests.clear()
            os._exit(0 if "forked" in said else 1)
        return [good(os.waitpid(child, 0)[1])]

    def one(self, request):
        how = text(request)
        if how == "forget":
            return None
        sender = request.get_response_sender()
        if how == "later":
            threading.Timer(0.05, lambda: sender.send(good("late"), FINAL)).start()
            return None
        if how == "drop":
            return None
        if how == "half":
            sender.send(good("half"))
            return None
        if how == "twice":
            sender.send(good("first"))
            return good("second")
        if how == "raise":
            sender.send(good("first"))
            raise ValueError("late")
        if how == "too few":
            sender.send(good("first"))
        if how == "raise after":
            sender.send(good("first"), FINAL)
            raise ValueError("too late")
        if how == "again":
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        if how == "again with":
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return good(how)
"""

NOTHING = """
class TritonPythonModel:
    def execute(self, requests):
        return None
"""

DECOUPLED = """
class TritonPythonModel:
    def initialize(self, args):
        self.queue = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            request = self.queue.get()
            sender = request.get_response_sender()
            sender.send(good(text(request)))
            sender.send(flags=FINAL)
            del request, sender

    def execute(self, requests):
        for request in requests:
            how = text(request)
            if how == "queue":
                self.queue.put(request)
                continue
            if how == "forget":
                continue
            sender = request.get_response_sender()
            if how == "drop":
                sender.send(good("one"))
                continue
            if how == "circle":
                circle = [sender, request]
                circle.append(circle)
                del circle, request, sender
                gc.collect()
                continue
            if how == "many":
                for index in range(300):
                    sender.send(good(index))
            if how == "threads":
                ends = [threading.Thread(target=sender.send, args=(good("x"),)) for _ in range(20)]
                for end in ends:
                    end.start()
                for end in ends:
                    end.join()
            if how == "raise":
                sender.send(good("one"))
                raise ValueError("late")
            if how == "raise after":
                sender.send(good("one"), FINAL)
                raise ValueError("too late")
            sender.send(flags=FINAL)
"""

ASYNC = """
class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(3):
                await asyncio.sleep(0.001)
                sender.send(good(index))
            if text(request) == "raise":
                raise ValueError("in a coroutine")
            sender.send(flags=FINAL)
"""


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., ServerProcess], tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "ordinary", ORDINARY)
    add_model(repository, "nothing", NOTHING)
    add_model(repository, "decoupled", DECOUPLED, decoupled=True)
    add_model(repository, "async", ASYNC, decoupled=True)
    return serve_module(repository)


NO_RESPONSE = "Expected an 'InferenceResponse' object in the execute function return list, found type '{}'."


@pytest.mark.parametrize(
    ("how", "status", "text"),
    [
        ("as usual", 200, "as usual"),
        ("later", 200, "late"),
        ("half", 200, "half"),
        ("forget", 500, FAILED.format("ordinary") + NO_RESPONSE.format("<class 'NoneType'>")),
        (
            "drop",
            500,
            FAILED.format("ordinary") + "The response sender of the request was dropped before it sent a response.",
        ),
        (
            "again",
            501,
            FAILED.format("ordinary")
            + "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, which takes a "
            "model with sequence_batching { iterative_sequence: true }",
        ),
        (
            "again with",
            500,
            FAILED.format("ordinary") + "Expected a None object in the execute function return list for reschduled "
            "request, found type '<class 'c_python_backend_utils.InferenceResponse'>'.",
        ),
    ],
)
def test_a_request_of_an_ordinary_model_always_ends(server: ServerProcess, how: str, status: int, text: str) -> None:
    assert ask(server, "ordinary", how) == (status, text)
    assert ask(server, "ordinary", "next") == (200, "next")


def test_a_second_response_does_not_replace_the_first(server: ServerProcess) -> None:
    status, text = ask(server, "ordinary", "twice")
    assert (status, text) in [(200, "first"), (500, text)]
    assert ask(server, "ordinary", "next") == (200, "next")


@pytest.mark.parametrize("how", ["raise", "raise after", "too few", "twice"])
def test_on_a_stream_an_ordinary_request_has_one_answer(server: ServerProcess, how: str) -> None:
    assert stream_to_end(server, "ordinary", [how, "next"]) == ["first", "next"]


@pytest.mark.parametrize("how", ["raise", "too few", "twice"])
def test_a_unary_caller_learns_of_an_answer_too_many(server: ServerProcess, how: str) -> None:
    assert ask(server, "ordinary", how) == (500, "expected a single response, got 2")
    assert ask(server, "ordinary", "next") == (200, "next")


def test_what_follows_the_end_of_a_request_changes_nothing(server: ServerProcess) -> None:
    assert ask(server, "ordinary", "raise after") == (200, "first")


def test_a_model_that_returns_nothing_fails_the_request(server: ServerProcess) -> None:
    text = FAILED.format("nothing") + "Expected a list in the execute return, found type '<class 'NoneType'>'."
    assert ask(server, "nothing", "x") == (500, text)


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ("end", ["end"]),
        ("queue", ["queue", "end"]),
        ("forget", ["end"]),
        ("drop", ["one", "end"]),
        ("circle", ["end"]),
        ("many", [*map(str, range(300)), "end"]),
        ("threads", [*["x"] * 20, "end"]),
        ("raise after", ["one", "end"]),
    ],
)
def test_a_request_of_a_decoupled_model_always_ends(server: ServerProcess, how: str, seen: list[str]) -> None:
    assert stream(server, "decoupled", how) == seen
    assert stream(server, "decoupled", "end") == ["end"]


def test_an_exception_ends_what_is_open(server: ServerProcess) -> None:
    one, error = stream(server, "decoupled", "raise")
    assert one == "one"
    assert error.startswith("!" + FAILED.format("decoupled") + "ValueError: late")


def test_a_process_that_the_model_forks_leaves_the_link_alone(server: ServerProcess) -> None:
    assert ask(server, "ordinary", "fork") == (200, "0")
    assert ask(server, "ordinary", "next") == (200, "next")


def test_coroutines_send_in_the_background(server: ServerProcess) -> None:
    assert stream(server, "async", "x") == ["0", "1", "2", "end"]
    *answers, error = stream(server, "async", "raise")
    assert answers == ["0", "1", "2"]
    assert error.startswith("!" + FAILED.format("async") + "ValueError: in a coroutine")

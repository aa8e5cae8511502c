"""Models that call models, from several threads and tasks at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.server import ServerProcess
from support.text_models import add_model, ask

CALLEE = """
class TritonPythonModel:
    def execute(self, requests):
        return [good(f"<{text(request)}>") for request in requests]
"""

COUNTER = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(int(text(request))):
                if sender.is_cancelled():
                    break
                sender.send(good(index))
            sender.send(flags=FINAL)
"""

# Sends responses of a million letters each.
LARGE = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(int(text(request))):
                sender.send(good("x" * 1_000_000))
            sender.send(flags=FINAL)
"""

# Sends a response, and an error once it is cancelled.
PATIENT = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(good("begun"))
            while not sender.is_cancelled():
                time.sleep(0.001)
            error = pb_utils.TritonError("stopped " + text(request), pb_utils.TritonError.CANCELLED)
            sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
"""

CALLER = """
def request(model, how):
    tensor = pb_utils.Tensor("HOW", np.array([str(how)], dtype=object))
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[tensor])

def tell(response):
    if response.has_error():
        return f"!{response.error().message()}"
    tensors = response.output_tensors()
    return tensors[0].as_numpy()[0].decode() if tensors else "-"


class TritonPythonModel:
    def initialize(self, args):
        try:
            request("callee", "early").exec()
            self.early = "called"
        except pb_utils.TritonModelException as error:
            self.early = str(error)

    def execute(self, requests):
        return [good(json.dumps(getattr(self, text(request))())) if hasattr(self, text(request)) else
                self.forward(request) for request in requests]

    def in_initialize(self):
        return self.early

    def forward(self, request):
        return globals()["request"]("callee", text(request)).exec()

    def threads(self):
        said = {}
        def call(index):
            said[index] = tell(request("callee", index).exec())
        threads = [threading.Thread(target=call, args=(index,)) for index in range(20)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        return [said[index] for index in range(20)]

    def tasks(self):
        async def all():
            return await asyncio.gather(*[request("callee", index).async_exec() for index in range(50)])
        return [tell(response) for response in asyncio.run(all())]

    def stream(self):
        responses = request("counter", 3).exec(decoupled=True)
        return [[tell(response) for response in responses] for _ in range(2)]

    def streams(self):
        async def one(count):
            return [tell(response) for response in await request("counter", count).async_exec(decoupled=True)]
        async def all():
            return await asyncio.gather(*[one(count) for count in range(4)])
        return asyncio.run(all())

    def long_stream(self):
        responses = request("counter", 1000).exec(decoupled=True)
        first, again = [[tell(response) for response in responses] for _ in range(2)]
        return [len(first), first == again == [*map(str, range(1000)), "-"]]

    def large_stream(self):
        responses = request("large", 30).exec(decoupled=True)
        return [len(tell(response)) for response in responses]

    def cancel(self):
        responses = request("counter", 1000000).exec(decoupled=True)
        first = [tell(next(responses)) for _ in range(3)]
        responses.cancel()
        later = [tell(response) for response in responses]
        return [first, len(later) < 999990, later[-1]]

    def cancel_patient(self):
        responses, queued = [request("patient", name).exec(decoupled=True) for name in ("one", "two")]
        first = tell(next(responses))
        queued.cancel()
        left = [tell(response) for response in queued]
        responses.cancel()
        responses.cancel()
        return [first, left, [tell(response) for response in responses]]

    def drop_queued(self):
        responses, queued = [request("patient", name).exec(decoupled=True) for name in ("one", "two")]
        next(responses)
        del queued
        responses.cancel()
        return [tell(response) for response in responses]

    def names_of_bytes(self):
        tensor = pb_utils.Tensor(b"HOW", np.array(["bytes"], dtype=object))
        made = pb_utils.InferenceRequest(model_name=b"callee", requested_output_names=[b"OUT"], inputs=[tensor])
        return tell(made.exec())

    def forget(self):
        next(request("counter", 1000000).exec(decoupled=True))
        return tell(request("callee", "after").exec())

    def kept(self):
        self.arrays = [request("callee", index).exec().output_tensors()[0].as_numpy() for index in range(3)]
        return [array[0].decode() for array in self.arrays]

    def wrong(self):
        return tell(request("absent", 1).exec())
"""


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., ServerProcess], tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "callee", CALLEE)
    add_model(repository, "counter", COUNTER, decoupled=True)
    add_model(repository, "large", LARGE, decoupled=True)
    add_model(repository, "patient", PATIENT, decoupled=True)
    add_model(repository, "caller", CALLER)
    return serve_module(repository)


@pytest.mark.parametrize(
    ("how", "returned"),
    [
        ("threads", [f"<{index}>" for index in range(20)]),
        ("tasks", [f"<{index}>" for index in range(50)]),
        ("stream", [["0", "1", "2", "-"]] * 2),
        ("streams", [[*map(str, range(count)), "-"] for count in range(4)]),
        ("long_stream", [1001, True]),
        ("large_stream", [1_000_000] * 30 + [1]),
        ("cancel", [["0", "1", "2"], True, "-"]),
        ("cancel_patient", ["begun", ["!the request was cancelled"], ["!stopped one"]]),
        ("drop_queued", ["!stopped one"]),
        ("names_of_bytes", "<bytes>"),
        ("forget", "<after>"),
        ("kept", ["<0>", "<1>", "<2>"]),
        ("in_initialize", "BLS is only supported during the 'execute' function."),
    ],
)
def test_a_call_brings_the_error_of_the_callee(server: ServerProcess, how: str, returned: object) -> None:
    status, text = ask(server, "caller", how)
    assert status == 200, text
    assert json.loads(text) == returned


def test_a_response_can_be_passed_on(server: ServerProcess) -> None:
    assert ask(server, "caller", "this text") == (200, "<this text>")


def test_a_call_that_fails_is_a_response(server: ServerProcess) -> None:
    status, text = ask(server, "caller", "wrong")
    assert status == 200
    assert "Request for unknown model: 'absent' is not found" in text

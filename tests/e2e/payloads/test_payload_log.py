"""The payload log: requests and responses as CloudEvents at a sink, whatever they came over."""

from __future__ import annotations

import json
import queue
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from alipes import Client
from alipes.errors import AlipesError
from support.kserve_script import KServeScript, ask
from support.models import add_model, times
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.sinks import Event, Sink
from support.waiting import TIMEOUT_S, until
from tritonclient.utils import InferenceServerException

FLAGS = ("--payload-log-header=X-Team", "--payload-log-header=Authorization", "--payload-log-redact=secret")
BODY = {"id": "7", "inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
FAILING = """
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("it has no luck")
"""

COUNT = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(given(request)[0])):
                sender.send(answer(Y=np.array([number], np.int32)))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.fixture(scope="module")
def sink() -> Iterator[Sink]:
    with Sink() as sink:
        yield sink


@pytest.fixture(scope="module")
def server(
    sink: Sink, tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns=2))
    add_python_model(repository, "fails", FAILING, signature="X: FP32[2] -> Y: FP32[2]", config="max_batch_size: 0")
    add_python_model(repository, "count", COUNT, signature="X: INT32[1] -> Y: INT32[1]", config=DECOUPLED)
    environment = {"INFERENCE_SERVICE_NAME": "iris", "POD_NAME": "iris-0", "POD_NAMESPACE": "ns"}
    return serve_module(repository, f"--payload-log-url={sink.url}", *FLAGS, environment=environment)


def post(server: ServerProcess, model: str, body: Any, **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{server.http}/v2/models/{model}/infer", data, headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def metrics(server: ServerProcess) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S) as answer:
        text = answer.read().decode()
    return {
        found[1]: float(found[2]) for found in re.finditer(r'^alipes_logged_\w+{outcome="(\w+)"} (\S+)$', text, re.M)
    }


def test_a_request_and_its_response_are_events_of_one_id(server: ServerProcess, sink: Sink) -> None:
    post(server, "double", BODY, **{"X-Team": "waves, «ö»", "Authorization": "Bearer sesame", "Cookie": "c=1"})
    request, response = sink.take(2)
    assert request.headers["ce-id"] == response.headers["ce-id"]
    assert [request.headers["ce-type"], response.headers["ce-type"]] == [
        "org.kubeflow.serving.inference.request",
        "org.kubeflow.serving.inference.response",
    ]
    about = {
        "ce-source": "iris-0",
        "ce-inferenceservicename": "iris",
        "ce-namespace": "ns",
        "ce-component": "predictor",
    }
    about |= {"ce-endpoint": "double", "ce-modelversion": "1", "ce-requestid": "7", "ce-specversion": "1.0"}
    assert about.items() <= request.headers.items()
    assert request.headers["content-type"] == "application/json"
    metadata = json.loads(urllib.request.unquote(request.headers["ce-metadata"]))
    assert metadata == {"x-team": ["waves, «ö»"], "authorization": ["[redacted]"]}
    assert "sesame" not in str(request) + str(response)
    asked, answered = json.loads(request.body), json.loads(response.body)
    assert asked == {**BODY, "model_name": "double", "model_version": "1"}
    assert answered["outputs"] == [{"name": "Y", "datatype": "FP32", "shape": [1, 2], "data": [2, 4]}]


def test_binary_requests_and_grpc_are_logged_as_documents(server: ServerProcess, sink: Sink) -> None:
    rows = np.array([[3, 4]], np.float32)
    for address in (f"http://{server.http}", f"grpc://{server.grpc}"):
        with Client(address, headers={"x-team": "grpc"}) as client:
            client.infer("double", {"X": rows})
        request, response = (json.loads(event.body) for event in sink.take(2))
        assert request["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [3, 4]}]
        assert response["outputs"][0]["data"] == [6, 8]


def test_each_response_of_a_request_is_an_event_of_its_id(server: ServerProcess, sink: Sink) -> None:
    """Over a stream of gRPC, and as events of HTTP."""
    with triton.InferenceServerClient(server.grpc) as client:
        answers: queue.Queue[Any] = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)), headers={"x-team": "streams"})
        tensor = triton.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([3], np.int32))
        client.async_stream_infer("count", [tensor], request_id="9", parameters={"secret": "sesame"})
        events = sink.take(4)
        client.stop_stream()
    assert_counted(events, "streams")
    assert events[0].headers["ce-requestid"] == "9"
    assert json.loads(events[0].body)["parameters"] == {"secret": "[redacted]"}
    headers = {"Content-Type": "application/json", "X-Team": "events"}
    url = f"http://{server.http}/v2/models/count/generate_stream"
    with urllib.request.urlopen(urllib.request.Request(url, b'{"X": 3}', headers), timeout=TIMEOUT_S) as answer:
        assert answer.read().count(b"data: ") == 3
    assert_counted(sink.take(4), "events")


def assert_counted(events: list[Event], team: str) -> None:
    """A request for three responses, and these."""
    request, *responses = events
    assert [event.side for event in events] == ["request", *["response"] * 3]
    assert len({event.headers["ce-id"] for event in events}) == 1
    assert json.loads(request.body)["inputs"][0]["data"] == [3]
    assert [json.loads(event.body)["outputs"][0]["data"] for event in responses] == [[0], [1], [2]]
    assert json.loads(urllib.request.unquote(request.headers["ce-metadata"])) == {"x-team": [team]}


def test_ordinary_models_of_a_stream_are_logged(server: ServerProcess, sink: Sink) -> None:
    with triton.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: None)
        for name, columns in (("double", 2), ("fails", 2), ("double", 1)):
            shape = [columns] if name == "fails" else [1, columns]
            tensor = triton.InferInput("X", shape, "FP32").set_data_from_numpy(np.ones(shape, np.float32))
            client.async_stream_infer(name, [tensor])
            request, response = sink.take(2)
            assert (request.side, response.side) == ("request", "response")
            expected = {"double2": None, "fails2": "500", "double1": "400"}[f"{name}{columns}"]
            assert response.headers.get("ce-status") == expected
        client.stop_stream()


def test_scripts_of_the_kserve_sdk_are_logged_over_grpc(sink: Sink, tmp_path: Path) -> None:
    environment = {"ALIPES_PAYLOAD_LOG_URL": sink.url, "ALIPES_PAYLOAD_LOG_REDACT": "secret"}
    with KServeScript("predictors", tmp_path, last="adder", environment=environment) as script:
        with triton.InferenceServerClient(script.grpc) as client:
            tensors = [triton.InferInput(name, [2], "FP32") for name in "ab"]
            for tensor in tensors:
                tensor.set_data_from_numpy(np.array([1.5, 2], np.float32))
            client.infer("adder", tensors, request_id="7", parameters={"secret": "sesame"})
            request, response = sink.take(2)
            text = triton.InferInput("x", [1], "BYTES").set_data_from_numpy(np.array([b"input"], dtype=object))
            # The script looks for a list, and these are raw contents.
            with pytest.raises(InferenceServerException, match="list index out of range"):
                client.infer("failing", [text])
            _, refused = sink.take(2)
        assert ask(f"{script.http}/v1/models/failing:predict", {"instances": ["input"]}).status == 400
        _, over_v1 = sink.take(2)
        script.stop()
    assert request.headers["ce-id"] == response.headers["ce-id"]
    assert (request.headers["ce-endpoint"], request.headers["content-type"]) == ("adder", "application/json")
    asked, answered = json.loads(request.body), json.loads(response.body)
    assert [one["data"] for one in asked["inputs"]] == [[1.5, 2], [1.5, 2]]
    assert asked["parameters"] == {"secret": "[redacted]"}
    assert {one["name"]: one["data"] for one in answered["outputs"]} == {"sum": [3, 4], "count": [2]}
    assert refused.headers["ce-status"] == "500"
    assert json.loads(refused.body) == {"error": "IndexError : list index out of range"}
    assert over_v1.headers["ce-status"] == "400"
    assert json.loads(over_v1.body) == {"error": "this cannot be used"}


def test_v1_is_logged_as_it_stands(server: ServerProcess, sink: Sink) -> None:
    asked = b'{"instances": [[1.50, 2]], "signature_name": "serving_default"}'
    request = urllib.request.Request(f"http://{server.http}/v1/models/double:predict", asked, {"x-request-id": "8"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        answered = answer.read()
    first, second = sink.take(2)
    assert (first.body, second.body) == (asked, answered)
    assert first.headers["ce-id"] == second.headers["ce-id"]
    assert (first.headers["ce-endpoint"], first.headers["ce-requestid"]) == ("double", "8")


def test_an_exchange_has_the_id_that_the_caller_sent(server: ServerProcess, sink: Sink) -> None:
    post(server, "double", BODY, **{"Ce-Id": "from-outside"})
    over_v1 = urllib.request.Request(
        f"http://{server.http}/v1/models/double:predict", b'{"instances": [[1, 2]]}', {"ce-id": "from-outside"}
    )
    with urllib.request.urlopen(over_v1, timeout=TIMEOUT_S):
        pass
    with Client(f"grpc://{server.grpc}", headers={"ce-id": "from-outside"}) as client:
        client.infer("double", {"X": np.ones((1, 2), np.float32)})
    events = sink.take(6)
    assert {event.headers["ce-id"] for event in events} == {"from-outside"}
    assert all("ce-metadata" not in event.headers for event in events)


def test_a_repeated_request_is_logged_each_time(server: ServerProcess, sink: Sink) -> None:
    for _ in range(3):
        post(server, "double", BODY)
    assert sorted(event.side for event in sink.take(6)) == ["request"] * 3 + ["response"] * 3


def test_a_failure_is_an_event_with_its_status(server: ServerProcess, sink: Sink) -> None:
    with Client(f"http://{server.http}") as client, pytest.raises(AlipesError):
        client.infer("fails", {"X": np.zeros(2, np.float32)})
    _, response = sink.take(2)
    assert response.headers["ce-status"] == "500"
    assert "it has no luck" in json.loads(response.body)["error"]


def test_parameters_that_are_redacted_have_no_value(server: ServerProcess, sink: Sink) -> None:
    post(server, "double", BODY | {"parameters": {"secret": "sesame", "open": 3}})
    request, _ = sink.take(2)
    assert json.loads(request.body)["parameters"] == {"secret": "[redacted]", "open": 3}


@pytest.mark.parametrize(
    ("words", "sides"),
    [
        (["--payload-log-mode=request"], ["request"]),
        (["--payload-log-mode=response"], ["response"]),
        (["--payload-log-sample=0"], []),
    ],
)
def test_what_is_logged_can_be_chosen_and_all_of_it_is_sent_at_the_end(
    words: list[str], sides: list[str], repository: Path, serve: Callable[..., ServerProcess]
) -> None:
    add_model(repository, "double", times(columns=2))
    with Sink() as sink:
        server = serve(repository, f"--payload-log-url={sink.url}", *words)
        for _ in range(20):
            post(server, "double", BODY)
        server.stop()
        assert [event.side for event in sink.events] == sides * 20


def test_a_sink_that_takes_nothing_costs_no_request(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double", times(columns=2))
    with Sink() as sink:
        sink.may_answer.clear()
        words = (f"--payload-log-url={sink.url}", "--payload-log-max-bytes=4096", "--exit-timeout-secs=5")
        server = serve(repository, *words)
        answers = {post(server, "double", BODY) for _ in range(50)}
        assert len(answers) == 1
        # One is being sent, seven wait.
        until(lambda: metrics(server)["dropped"] >= 100 - 8, "the rest is counted")
        sink.status = 503
        sink.may_answer.set()
        until(lambda: metrics(server)["failed"] >= 1, "what the sink refused is counted")
        server.wait_for_output(r"the payload log's sink did not take 1 payloads: it answered 503")
        sink.status = 200
        sink.events.clear()
        post(server, "double", BODY)
        server.wait_for_output("the payload log is taken again")
        until(lambda: metrics(server)["sent"] >= 1, "what the sink took is counted")


def test_a_sink_that_is_not_there_is_reported_once(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double", times(columns=2))
    with Sink() as sink:
        url = sink.url
    server = serve(repository, f"--payload-log-url={url}")
    for _ in range(10):
        post(server, "double", BODY)
    until(lambda: metrics(server)["failed"] >= 3, "what was tried is counted")
    server.wait_for_output("the payload log's sink did not take")  # the log follows the counts
    assert server.output.count("the payload log's sink did not take") == 1
    server.stop()  # without a word about those that wait, and without a wait for them

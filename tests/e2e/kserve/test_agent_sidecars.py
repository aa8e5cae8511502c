"""KServe's own agent in front of a server, as batcher and as logger: answers stay right, and both log alike."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

import pytest
from alipes import Client
from support.kserve_agent import SERVER_PORT, Agent
from support.kube import Missing
from support.models import add_model, times
from support.network import own_network
from support.python_models import add_python_model
from support.server import ServerProcess
from support.sinks import Event, Sink
from support.waiting import TIMEOUT_S

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

Serve = Callable[..., ServerProcess]
SERVICE = {"INFERENCE_SERVICE_NAME": "iris", "POD_NAME": "iris-0", "POD_NAMESPACE": "ns"}
# As KServe's webhook writes them for a pod of this service.
LOGGER = (
    *("--source-uri=iris-0", "--inference-service=iris", "--namespace=ns", "--component=predictor"),
    *("--endpoint=double", "--log-mode=all", "--metadata-headers=X-Team"),
)
ALIKE = ("id", "type", "specversion", "source", "inferenceservicename", "namespace", "component", "endpoint")
FAILING = """
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("it has no luck")
"""
ROWS = {"instances": [[1.5, 2]]}


@pytest.fixture
def network() -> Iterator[ExitStack]:
    """The network of a pod; what the stack holds ends in it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network("10.9.8.7/32"))
        except PermissionError as reason:
            pytest.skip(str(reason))
        yield stack


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return add_model(tmp_path / "models", "double", times(columns=2)).parent


def start_agent(stack: ExitStack, folder: Path, *flags: str) -> Agent:
    try:
        return stack.enter_context(Agent(folder / "agent.log", *flags)).wait_until_it_listens()
    except Missing as reason:
        pytest.skip(str(reason))


def post(port: int, path: str, body: object, **headers: str) -> dict[str, object]:
    data = json.dumps(body).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"} | headers)
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        found: dict[str, object] = json.loads(answer.read())
    return found


def test_each_caller_of_the_agent_s_batcher_gets_its_own_rows(
    network: ExitStack, repository: Path, tmp_path: Path, serve: Serve
) -> None:
    serve(repository, f"--http-port={SERVER_PORT}")
    agent = start_agent(network, tmp_path, "--enable-batcher", "--max-batchsize=4", "--max-latency=60000")

    def ask(number: int) -> object:
        return post(agent.port, "/v1/models/double:predict", {"instances": [[number, 2 * number]]})["predictions"]

    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(ask, range(8)))
    assert answers == [[[2 * number, 4 * number]] for number in range(8)]
    assert "batch predict with size 4 /v1/models/double:predict" in agent.output
    with Client(f"http://127.0.0.1:{SERVER_PORT}") as client:
        (statistics,) = client.statistics("double")
    assert (statistics["execution_count"], statistics["inference_count"]) == (2, 8)
    # The batcher leaves V2 alone.
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    assert post(agent.port, "/v2/models/double/infer", {"inputs": [tensor]})["outputs"][0]["data"] == [2, 4]


def test_events_of_both_loggers_are_alike(network: ExitStack, repository: Path, tmp_path: Path, serve: Serve) -> None:
    theirs, ours = (network.enter_context(Sink()) for _ in range(2))
    words = (f"--payload-log-url={ours.url}", "--payload-log-header=X-Team")
    serve(repository, f"--http-port={SERVER_PORT}", *words, environment=SERVICE)
    agent = start_agent(network, tmp_path, f"--log-url={theirs.url}", *LOGGER)
    assert post(agent.port, "/v1/models/double:predict", ROWS, **{"X-Team": "optics", "Ce-Id": "7"}) == {
        "predictions": [[3, 4]]
    }
    for their, our in zip(by_side(theirs.take(2)), by_side(ours.take(2)), strict=True):
        assert {name: our.headers[f"ce-{name}"] for name in ALIKE} == {
            name: their.headers[f"ce-{name}"] for name in ALIKE
        }
        assert our.headers["ce-id"] == "7"
        assert (our.body, our.headers["content-type"]) == (their.body, their.headers["content-type"])
        assert metadata(our) == metadata(their) == {"x-team": ["optics"]}
        assert attributes(their) <= attributes(our)
        for event in (their, our):
            assert moment(event, "time") <= moment(event, "recordedtime")


def test_a_caller_without_an_id_gets_one_from_each(
    network: ExitStack, repository: Path, tmp_path: Path, serve: Serve
) -> None:
    theirs, ours = (network.enter_context(Sink()) for _ in range(2))
    serve(repository, f"--http-port={SERVER_PORT}", f"--payload-log-url={ours.url}", environment=SERVICE)
    agent = start_agent(network, tmp_path, f"--log-url={theirs.url}", *LOGGER)
    post(agent.port, "/v1/models/double:predict", ROWS)
    for sink in (theirs, ours):
        request, response = by_side(sink.take(2))
        assert request.headers["ce-id"] == response.headers["ce-id"]
        assert uuid.UUID(request.headers["ce-id"]).version == 4


def test_a_failure_is_logged_by_the_server_alone(
    network: ExitStack, repository: Path, tmp_path: Path, serve: Serve
) -> None:
    theirs, ours = (network.enter_context(Sink()) for _ in range(2))
    add_python_model(repository, "fails", FAILING, signature="X: FP32[2] -> Y: FP32[2]", config="max_batch_size: 4")
    serve(repository, f"--http-port={SERVER_PORT}", f"--payload-log-url={ours.url}", environment=SERVICE)
    agent = start_agent(network, tmp_path, f"--log-url={theirs.url}", *LOGGER)
    with pytest.raises(HTTPError) as refused:
        post(agent.port, "/v1/models/fails:predict", ROWS, **{"Ce-Id": "8"})
    answered = refused.value.read()
    (request, response) = by_side(ours.take(2))
    assert (response.headers["ce-status"], response.headers["ce-id"]) == ("500", "8")
    assert json.loads(response.body) == json.loads(answered)
    # A request behind it is the next that comes from the agent.
    post(agent.port, "/v1/models/double:predict", ROWS, **{"Ce-Id": "9"})
    arrived = sorted((event.headers["ce-id"], event.side) for event in theirs.take(3))
    assert arrived == [("8", "request"), ("9", "request"), ("9", "response")]
    assert request.headers["ce-id"] == "8"


def by_side(events: list[Event]) -> list[Event]:
    """The request and then the response: KServe's workers send them in any order."""
    return sorted(events, key=lambda event: event.side)


def attributes(event: Event) -> set[str]:
    return {name for name in event.headers if name.startswith("ce-")}


def metadata(event: Event) -> dict[str, list[str]]:
    """Names of headers are alike in any case."""
    found = json.loads(unquote(event.headers["ce-metadata"]))
    return {name.lower(): values for name, values in found.items()}


def moment(event: Event, name: str) -> datetime:
    return datetime.fromisoformat(event.headers[f"ce-{name}"].replace("Z", "+00:00"))

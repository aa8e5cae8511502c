"""`alipes.Predictor` in an app: a transformer in front of another server, or of a model of the same one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import alipes
import numpy as np
import pytest
from support.kserve_script import Answer, ask
from support.notes import Notes
from support.otlp import Collector
from support.ports import free_ports
from support.server import ServerProcess
from support.waiting import until

PREDICTOR = """
import asyncio
import os
from pathlib import Path
from typing import Annotated

import alipes
import numpy as np

NOTES = Path(os.environ["NOTES"])
Rows = Annotated[np.ndarray, np.float32, (None,)]


@alipes.model(max_batch_size=8)
def double(x: Rows) -> Rows:
    return x * 2


@alipes.model
async def patient(x: Annotated[np.ndarray, np.float32, (None,)]) -> Annotated[np.ndarray, np.float32, (None,)]:
    (NOTES / "begun").write_text("")
    try:
        while not (NOTES / "go").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        (NOTES / "cancelled").write_text("")
        raise
    return x


@alipes.model
def narrow(x: Annotated[np.ndarray, np.float32, (2,)]) -> Annotated[np.ndarray, np.float32, (2,)]:
    return x
"""

# Each function is a process: tests that start servers of their own name the one that they call.
TRANSFORMER = """
import alipes
import numpy as np

double = alipes.Predictor("double")
patient = alipes.Predictor("patient", timeout_s=0.5)
waiting = alipes.Predictor("patient")
narrow = alipes.Predictor("narrow")
cautious = alipes.Predictor("patient", timeout_s=0.2, fallback=lambda inputs: {"output_0": np.zeros(1)})


@alipes.model
async def shift(instances: list[float]) -> list[float]:
    answer = await double.infer_async({"x": np.array(instances, np.float32)[:, None] + 1})
    return answer["output_0"][:, 0].tolist()


@alipes.model
def plain(instances: list[float]) -> list[float]:
    return double.infer({"x": np.array(instances, np.float32)[:, None] + 1})["output_0"][:, 0].tolist()


@alipes.model
async def slow(instances: list[float]) -> list[float]:
    return (await patient.infer_async({"x": np.array(instances, np.float32)}))["output_0"].tolist()


@alipes.model
async def waits(instances: list[float]) -> list[float]:
    return (await waiting.infer_async({"x": np.array(instances, np.float32)}))["output_0"].tolist()


@alipes.model
def waits_plain(instances: list[float]) -> list[float]:
    return waiting.infer({"x": np.array(instances, np.float32)})["output_0"].tolist()


@alipes.model
async def careful(instances: list[float]) -> list[float]:
    return (await cautious.infer_async({"x": np.array(instances, np.float32)}))["output_0"].tolist()


@alipes.model
async def documents(instances: list[dict[str, float]], scale: float = 1.0) -> dict[str, list[float]]:
    rows = np.array([[one["x"] * scale] for one in instances], np.float32)
    return {"predictions": (await double.infer_async({"x": rows}))["output_0"][:, 0].tolist()}


@alipes.model
async def wrong(instances: list[float]) -> list[float]:
    return (await narrow.infer_async({"x": np.array(instances, np.float32)}))["output_0"].tolist()
"""

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apps")
    (folder / "predictor_app.py").write_text(PREDICTOR)
    (folder / "transformer_app.py").write_text(TRANSFORMER)
    return folder


@pytest.fixture(scope="module")
def notes(folder: Path) -> Notes:
    return Notes(folder / "notes")


@pytest.fixture
def fresh_notes(notes: Notes) -> Iterator[Notes]:
    for name in notes.names():
        notes.remove(name)
    yield notes
    notes.write("go")


@pytest.fixture(scope="module")
def predictor(serve_module: Serve, folder: Path, notes: Notes) -> ServerProcess:
    return serve_module(folder / "predictor_app.py", environment=notes.environment)


def flags(predictor: ServerProcess, protocol: str) -> list[str]:
    host = predictor.grpc if protocol == "grpc-v2" else predictor.http
    return [f"--predictor_host={host}", f"--predictor_protocol={protocol}"]


@pytest.fixture(scope="module", params=["v2", "grpc-v2", "same server"])
def transformer(
    request: pytest.FixtureRequest, serve_module: Serve, folder: Path, notes: Notes, predictor: ServerProcess
) -> ServerProcess:
    file = folder / "transformer_app.py"
    if request.param == "same server":
        return serve_module(file, str(folder / "predictor_app.py"), environment=notes.environment)
    return serve_module(file, *flags(predictor, request.param))


def call(server: ServerProcess, model: str, instances: list[float]) -> Answer:
    return ask(f"http://{server.http}/{model}", {"instances": instances})


@pytest.mark.parametrize("model", ["shift", "plain"])
def test_a_function_calls_the_predictor_behind_it(transformer: ServerProcess, model: str) -> None:
    for rows in ([1.0], [1.0, 2.0, 3.0]):
        answer = call(transformer, model, rows)
        assert (answer.status, answer.document) == (200, [2 * (row + 1) for row in rows])


def test_functions_answer_predictions_of_v1(transformer: ServerProcess) -> None:
    def predict(model: str, body: object) -> Answer:
        return ask(f"http://{transformer.http}/v1/models/{model}:predict", body)

    answer = predict("documents", {"instances": [{"x": 1.0}, {"x": 2.0}], "scale": 10})
    assert (answer.status, answer.document) == (200, {"predictions": [20.0, 40.0]})
    assert predict("shift", {"instances": [1.0, 2.0]}).document == {"predictions": [4.0, 6.0]}
    refused = predict("documents", {"instances": [{"x": "one"}]})
    assert refused.status == 400
    assert "$.instances[0]" in refused.document["error"]
    assert predict("documents", b"{").status == 400


def test_a_predictor_that_is_too_slow_ends_with_its_time(transformer: ServerProcess, fresh_notes: Notes) -> None:
    answer = call(transformer, "slow", [1.0])
    assert answer.status == 504
    assert "did not answer within 0.5 s" in answer.document["error"]
    fresh_notes.read("cancelled")


def test_a_fallback_answers_for_a_predictor_that_is_too_slow(transformer: ServerProcess, fresh_notes: Notes) -> None:
    assert call(transformer, "careful", [1.0]).document == [0.0]
    assert call(transformer, "careful", [1.0]).document == [0.0]
    fresh_notes.write("go")
    assert call(transformer, "careful", [7.0]).document == [7.0]


@pytest.mark.parametrize("model", ["waits", "waits_plain"])
def test_the_call_of_a_caller_that_leaves_is_cancelled(
    transformer: ServerProcess, fresh_notes: Notes, model: str
) -> None:
    with alipes.Client(f"http://{transformer.http}", timeout_s=None) as client:
        assert client.is_ready(model)
    import json
    import socket

    host, port = transformer.http.rsplit(":", 1)
    body = json.dumps({"instances": [1.0]})
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"POST /{model} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        fresh_notes.read("begun")
    fresh_notes.read("cancelled")
    assert call(transformer, "shift", [1.0]).document == [4.0]


def test_a_deadline_that_passes_cancels_the_call(transformer: ServerProcess, fresh_notes: Notes) -> None:
    with alipes.Client(f"grpc://{transformer.grpc}", retry=alipes.client.Retry(times=0)) as client:
        assert client.call("shift", instances=[1.0]) == [4.0]
        with pytest.raises(alipes.DeadlineExceeded):
            client.infer("waits", {"instances": np.array([1.0])}, timeout_s=1.0)
    fresh_notes.read("cancelled")


def test_a_call_that_the_predictor_refuses_is_the_fault_of_the_function(transformer: ServerProcess) -> None:
    assert call(transformer, "wrong", [1.0, 2.0]).document == [1.0, 2.0]
    answer = call(transformer, "wrong", [1.0, 2.0, 3.0])
    assert answer.status == 500
    assert "refuses the call" in answer.body.decode()


@pytest.mark.parametrize("protocol", ["v2", "grpc-v2"])
def test_a_predictor_that_dies_is_named_and_found_again(
    serve: Serve, folder: Path, fresh_notes: Notes, protocol: str
) -> None:
    ports = dict(zip(("http", "grpc", "metrics"), free_ports(3), strict=True))
    words = [f"--{name}-port={port}" for name, port in ports.items()]
    file = folder / "predictor_app.py"
    first = serve(file, *words, environment=fresh_notes.environment)
    health = "--enable_predictor_health_check"
    transformer = serve(f"{folder}/transformer_app.py:shift", *flags(first, protocol), health)
    assert call(transformer, "shift", [1.0]).document == [4.0]
    ready = f"http://{transformer.http}/v2/models/shift/ready"
    until(lambda: ask(ready).status == 200)
    first.kill()
    answer = call(transformer, "shift", [1.0])
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.document["error"].startswith("predictor 'double' at ")
    until(lambda: ask(ready).status != 200)
    serve(file, *words, environment=fresh_notes.environment)
    assert call(transformer, "shift", [1.0]).document == [4.0]
    until(lambda: ask(ready).status == 200)


def test_a_predictor_that_dies_while_it_computes_ends_the_call(serve: Serve, folder: Path, fresh_notes: Notes) -> None:
    predictor = serve(f"{folder}/predictor_app.py:patient", environment=fresh_notes.environment)
    transformer = serve(f"{folder}/transformer_app.py:waits", *flags(predictor, "grpc-v2"))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(call, transformer, "waits", [1.0])
        fresh_notes.read("begun")
        predictor.kill()
        assert answer.result().status == 503


def test_model_name_names_the_model_of_an_app(serve: Serve, folder: Path, predictor: ServerProcess) -> None:
    file = folder / "named_app.py"
    file.write_text(
        "import alipes\nimport numpy as np\n\npredictor = alipes.Predictor()\n\n\n@alipes.model\n"
        "async def anything(instances: list[float]) -> dict[str, list[float]]:\n"
        "    rows = await predictor.infer_async(np.array(instances, np.float32)[:, None])\n"
        "    return {'predictions': rows[:, 0].tolist()}\n"
    )
    server = serve(file, "--model_name", "double", "--predictor_host", predictor.http, "--workers", "5")
    assert call(server, "double", [1.0]).document == {"predictions": [2.0]}
    assert call(server, "anything", [1.0]).status == 404


def traced_at(collector: Collector) -> list[str]:
    """Flags of a server that sends the spans of traces that callers have begun, soon after their end."""
    general = ("mode=opentelemetry", "level=TIMESTAMPS", "rate=0")
    place = (f"opentelemetry,url={collector.url}", "opentelemetry,bsp_schedule_delay=50")
    return [f"--trace-config={one}" for one in (*general, *place)]


def test_transformer_and_predictor_are_parts_of_one_trace(serve: Serve, folder: Path, notes: Notes) -> None:
    trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with Collector() as collector:
        tracing = traced_at(collector)
        predictor = serve(f"{folder}/predictor_app.py:double", *tracing, environment=notes.environment)
        for protocol in ("v2", "grpc-v2"):
            transformer = serve(f"{folder}/transformer_app.py:shift", *tracing, *flags(predictor, protocol))
            collector.spans.clear()
            # The first call asks for the predictor's metadata, which is no request.
            for _ in range(2):
                with alipes.Client(f"http://{transformer.http}") as client:
                    headers = {"traceparent": f"00-{trace}-{caller}-01"}
                    client.infer("shift", {"instances": np.array([1.0])}, headers=headers)
            until(lambda: len([span for span in collector.spans if span.name == "InferRequest"]) >= 4)
            requests = [span for span in collector.spans if span.name == "InferRequest"]
            assert {span.trace for span in collector.spans} == {trace}
            numbers = {span.number for span in collector.spans}
            assert {span.parent for span in requests} - numbers == {caller}
            transformer.kill()


def test_headers_that_are_forwarded_to_models_continue_a_trace(serve: Serve, folder: Path, notes: Notes) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    with Collector() as collector:
        tracing = traced_at(collector)
        predictor = serve(f"{folder}/predictor_app.py:double", *tracing, environment=notes.environment)
        pattern = "--http-header-forward-pattern=^traceparent$"
        transformer = serve(f"{folder}/transformer_app.py:shift", *flags(predictor, "grpc-v2"), pattern)
        with alipes.Client(f"http://{transformer.http}") as client:
            headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
            client.infer("shift", {"instances": np.array([1.0])}, headers=headers)
        until(lambda: any(span.name == "InferRequest" for span in collector.spans))
        assert {span.trace for span in collector.spans} == {trace}


def test_a_call_of_v1_continues_its_trace_by_itself(serve: Serve, folder: Path, notes: Notes) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    with Collector() as collector:
        tracing = traced_at(collector)
        predictor = serve(f"{folder}/predictor_app.py:double", *tracing, environment=notes.environment)
        transformer = serve(f"{folder}/transformer_app.py:documents", *flags(predictor, "v2"))
        url = f"http://{transformer.http}/v1/models/documents:predict"
        headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        assert ask(url, {"instances": [{"x": 1.0}]}, **headers).document == {"predictions": [2.0]}
        until(lambda: any(span.name == "InferRequest" for span in collector.spans))
        assert {span.trace for span in collector.spans} == {trace}

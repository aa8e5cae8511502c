"""Scripts of the KServe SDK serve as they stand: V1, V2 over HTTP and gRPC, headers, events, failures."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from alipes.compat.kserve.grpc_client import InferenceGRPCClient
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.rest_client import HTTPStatusError, InferenceRESTClient, RESTConfig
from alipes.compat.kserve.tensors import InferInput
from support.certificates import Authority
from support.kserve_facts import SDK_MARKS, SDK_PYTHON
from support.kserve_script import OURS, KServeScript, ask
from support.waiting import TIMEOUT_S, until

pytestmark = pytest.mark.timeout(240)


SDK_WAY = pytest.param(str(SDK_PYTHON), (), id="SDK", marks=SDK_MARKS)
# The same scripts, run by the SDK itself, answer the same.
SDK = pytest.param((str(SDK_PYTHON), ()), id="SDK", marks=SDK_MARKS)


@pytest.fixture(scope="module", params=[pytest.param((sys.executable, OURS), id="alipes"), SDK])
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KServeScript]:
    folder, (python, way) = tmp_path_factory.mktemp("predictors"), request.param
    words = ("--model_name=double", "--max_asyncio_workers=4")
    with KServeScript("predictors", folder, *words, last="adder", python=python, way=way) as one:
        yield one


def predict(script: KServeScript, model: str, body: Any, **headers: str) -> Any:
    """The answer of a model over V1."""
    return ask(f"{script.http}/v1/models/{model}:predict", body, **headers)


def test_plain_handlers_answer_v1(script: KServeScript) -> None:
    answer = predict(script, "double", {"instances": [[1, 2], [3, 4]]})
    assert (answer.status, answer.document) == (200, {"predictions": [[2, 4], [6, 8]]})
    assert answer.headers["content-type"] == "application/json"
    assert predict(script, "alias", {"instances": [4]}).document == {"predictions": [8]}


def test_async_handlers_run_one_after_the_other(script: KServeScript) -> None:
    answer = predict(script, "chain", {"instances": [1, 2]}, x_caller="me")
    assert answer.document == {"predictions": [20, 30], "caller": "me"}


def test_async_requests_run_together(script: KServeScript) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda n: predict(script, "pair", {"instances": [n]}).document, (1, 2)))
    first = next(one["predictions"] for one in answers if one["predictions"][0] == "first")
    assert len(answers) == 2
    assert first[1] in (1, 2)
    assert {"predictions": ["second"]} in answers


def test_a_running_server_takes_one_more_model(script: KServeScript) -> None:
    for value in (5, 6):
        assert predict(script, "register", {"instances": ["late", value]}).document == {"predictions": ["late"]}
        assert predict(script, "late", {"instances": []}).document == {"predictions": [value]}


def test_explanations_are_the_models(script: KServeScript) -> None:
    answer = ask(f"{script.http}/v1/models/double:explain", {"instances": [3]})
    assert (answer.status, answer.document) == (200, {"explanations": [{"share": 3}]})
    missing = ask(f"{script.http}/v1/models/chain:explain", {"instances": [3]})
    assert (missing.status, missing.document) == (501, {"error": "Could not find explainer_host."})


def test_a_model_gives_its_answers_headers(script: KServeScript) -> None:
    answer = predict(script, "speaker", {"instances": [1]}, x_request_id="9")
    assert answer.headers["x-model"] == "speaker"
    assert {"x-request-id", "content-type"} <= set(answer.document["predictions"])


@pytest.mark.parametrize(
    ("kind", "status", "text"),
    [
        ("input", 400, "this cannot be used"),
        ("inference", 500, "it broke"),
        ("ready", 503, "Model with name failing is not ready. It warms up."),
        ("missing", 501, "no such thing"),
        ("other", 500, "KeyError : 'key'"),
    ],
)
def test_an_exception_has_its_status_and_text(script: KServeScript, kind: str, status: int, text: str) -> None:
    answer = predict(script, "failing", {"instances": [kind]})
    assert (answer.status, answer.document) == (status, {"error": text})
    tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "data": [kind]}
    answer = ask(f"{script.http}/v2/models/failing/infer", {"inputs": [tensor]})
    assert (answer.status, answer.document) == (status, {"error": text})


def test_a_body_that_is_no_json_is_refused(script: KServeScript) -> None:
    answer = predict(script, "double", b"{")
    assert answer.status == 400
    assert answer.document["error"].startswith("Unrecognized request format: ")
    assert predict(script, "double", {"instances": 3}).document == {"error": 'Expected "instances" to be a list'}
    answer = ask(f"{script.http}/v2/models/double/infer", {"inputs": 3})
    # The SDK's framework has a status of its own for it.
    assert answer.status == 422 or answer.document["error"].startswith("Unrecognized request format: ")


def test_json_over_v2_is_answered_in_json(script: KServeScript) -> None:
    tensors = [{"name": name, "shape": [2], "datatype": "FP32", "data": [1.5, 2]} for name in "ab"]
    answer = ask(f"{script.http}/v2/models/adder/infer", {"id": "7", "inputs": tensors})
    assert answer.document == {
        "model_name": "adder",
        "model_version": None,
        "id": "7",
        "parameters": None,
        "outputs": [
            {"name": "sum", "shape": [2], "datatype": "FP32", "parameters": None, "data": [3.0, 4.0]},
            {"name": "count", "shape": [1], "datatype": "INT64", "parameters": None, "data": [2]},
        ],
    }


def test_binary_tensors_over_v2_are_answered_in_kind(script: KServeScript) -> None:
    array = np.arange(1000, dtype=np.float32)

    async def infer() -> Any:
        tensor = InferInput("a", [1000], "FP32")
        tensor.set_data_from_numpy(array, binary_data=True)
        request = InferRequest("adder", [tensor, tensor], "7", parameters={"binary_data_output": True})
        headers: dict[str, str] = {}
        async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
            response = await client.infer(script.http, request, "adder", response_headers=headers)
        return response, headers

    response, headers = asyncio.run(infer())
    np.testing.assert_array_equal(response.outputs[0].as_numpy(), 2 * array)
    assert response.outputs[1].as_numpy().tolist() == [2]
    # The SDK names no type.
    assert headers.get("content-type", "application/octet-stream") == "application/octet-stream"
    assert "inference-header-content-length" in headers


def test_grpc_is_answered_like_http(script: KServeScript) -> None:
    async def infer(model: str, *tensors: InferInput) -> Any:
        async with InferenceGRPCClient(script.grpc) as client:
            assert await client.is_server_live()
            assert await client.is_model_ready(model)
            return await client.infer(InferRequest(model, list(tensors), "7"), headers=[("x-caller", "me")])

    plain = InferInput("a", [2], "FP32", [1.5, 2.0])
    response = asyncio.run(infer("adder", plain, plain))
    assert (response.id, response.outputs[0].as_numpy().tolist(), response.outputs[1].data) == ("7", [3.0, 4.0], [2])
    # As scripts catch it that have imported grpc.
    with pytest.raises(grpc.aio.AioRpcError, match="this cannot be used") as caught:
        asyncio.run(infer("failing", InferInput("x", [1], "BYTES", ["input"])))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_clients_of_triton_are_answered_over_grpc(script: KServeScript) -> None:
    with grpc_client.InferenceServerClient(script.grpc) as client:
        tensor = grpc_client.InferInput("a", [100_000], "FP32")
        tensor.set_data_from_numpy(np.ones(100_000, np.float32))
        result = client.infer("adder", [tensor])
        assert result.as_numpy("sum").tolist() == [1.0] * 100_000
        assert client.get_model_metadata("adder").inputs[0].name == "a"


def test_clients_of_v1_say_whether_a_model_is_ready(script: KServeScript) -> None:
    async def look() -> Any:
        async with InferenceRESTClient() as client:
            ready = await client.is_server_live(script.http), await client.is_model_ready(script.http, "double")
            with pytest.raises(HTTPStatusError, match="'404 Not Found' for url"):
                await client.infer(script.http, {"instances": []}, "nobody")
            return ready, await client.explain(script.http, "double", {"instances": [1]})

    assert asyncio.run(look()) == ((True, True), {"explanations": [{"share": 1}]})


@pytest.mark.parametrize("model", ["adder", "endless"])
def test_a_request_of_another_kind_is_refused(script: KServeScript, model: str) -> None:
    answer = ask(f"{script.http}/v2/models/{model}/generate", {"a": [1.0]})
    assert answer.status >= 400
    assert script.is_sdk or answer.document["error"].endswith(f"model '{model}' takes requests of V1 and V2 alone")


def test_the_axis_of_requests_is_the_first_of_the_metadata(script: KServeScript) -> None:
    metadata = ask(f"{script.http}/v2/models/tables").document
    assert metadata["inputs"] == [{"name": "a", "datatype": "FP32", "shape": [-1, 1]}]


def test_a_handler_that_yields_is_answered_piece_by_piece(script: KServeScript) -> None:
    answer = predict(script, "storyteller", {"instances": ["once ", "upon ", "a time"]})
    assert (answer.status, answer.body) == (200, b"once upon a time")
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-type" not in answer.headers
    assert predict(script, "storyteller", {"instances": []}).body == b""


def test_a_handler_that_fails_after_its_first_piece_breaks_the_body_off(script: KServeScript) -> None:
    with pytest.raises(http.client.IncompleteRead):
        predict(script, "storyteller", {"instances": ["once ", "fail"]})


def test_a_reader_who_leaves_ends_the_handler(script: KServeScript) -> None:
    address = script.http.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    body, kind = b'{"instances": []}', {"content-type": "application/json"}
    connection.request("POST", "/v1/models/endless:predict", body, kind)
    assert connection.getresponse().read(30) == b"and so on, and so on, and so o"
    connection.close()
    until(lambda: predict(script, "endless", {"instances": ["has it ended?"]}).body == b"True")


def test_what_comes_in_pieces_is_no_message_of_grpc(script: KServeScript) -> None:
    async def infer() -> Any:
        async with InferenceGRPCClient(script.grpc) as client:
            return await client.infer(InferRequest("storyteller", [InferInput("x", [1], "BYTES", ["once"])]))

    with pytest.raises(grpc.aio.AioRpcError):
        asyncio.run(infer())


@pytest.mark.parametrize("model", ["tables", "async-tables"])
def test_a_model_that_says_so_gets_several_requests_as_one(script: KServeScript, model: str) -> None:
    def ask_for(guest: str) -> Any:
        return predict(script, model, {"instances": [guest, guest]}, x_caller="me", x_guest=guest)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask_for, "abcd"))
    size = 2 if script.is_sdk else 8
    for guest, answer in zip("abcd", answers, strict=True):
        assert answer.document == {"predictions": [[guest, size]] * 2, "caller": "me"}


@pytest.mark.parametrize("model", ["tables", "async-tables"])
def test_a_request_that_fails_does_not_fail_those_beside_it(script: KServeScript, model: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(lambda guest: predict(script, model, {"instances": [guest]}), ["a", "late", "c", "d"])
        )
    assert [answer.status for answer in answers] == [200, 500, 200, 200]
    assert answers[1].document == {"error": "somebody is late"}
    assert answers[3].document["predictions"] == [["d", 1]]


EVENT = {"id": "1", "source": "here", "specversion": "1.0", "type": "question"}


def test_an_event_in_headers_is_answered_in_headers(script: KServeScript) -> None:
    headers = {f"ce-{name}": value for name, value in EVENT.items()}
    answer = predict(script, "double", {"instances": [1]}, **headers)
    assert answer.document == {"predictions": [2]}
    assert answer.headers["ce-type"] == "io.kserve.inference.response"
    assert answer.headers["ce-source"] == "io.kserve.inference.double"
    assert answer.headers["content-type"] == "application/json"


def test_an_event_in_one_object_is_answered_so(script: KServeScript) -> None:
    body = json.dumps({**EVENT, "time": "2026-01-01T00:00:00Z", "data": {"instances": [1]}}).encode()
    answer = predict(script, "double", body, content_type="application/cloudevents+json")
    assert answer.headers["content-type"] == "application/cloudevents+json"
    assert answer.document["data"] == {"predictions": [2]}
    assert answer.document["type"] == "io.kserve.inference.response"


def test_a_model_has_a_state_over_v1(script: KServeScript) -> None:
    assert ask(f"{script.http}/v1/models/nobody").status == 404
    assert ask(f"{script.http}/v1/models/resting").status == 503
    refused = predict(script, "resting", {"instances": [1]})
    assert (refused.status, refused.document["error"]) == (503, "Model with name resting is not ready.")
    assert ask(f"{script.http}/v1/models/double").document == {"name": "double", "ready": True}


def test_everybody_may_read_the_names_of_the_models(script: KServeScript) -> None:
    answer = ask(f"{script.http}/v1/models")
    assert answer.status == 200
    assert {"double", "alias", "chain", "resting", "adder"} <= set(answer.document["models"])
    for path, status in (("index", 200), ("models/double/load", 403), ("models/double/unload", 403)):
        assert script.is_sdk or ask(f"{script.http}/v2/repository/{path}", {}).status == status, path


def test_the_key_of_an_operator_hides_the_names(tmp_path: Path) -> None:
    environment = {"ALIPES_HTTP_RESTRICTED_API": "model-repository:names-key=word"}
    with KServeScript("transformer", tmp_path, environment=environment) as script:
        refused = ask(f"{script.http}/v1/models")
        assert refused.status == 403
        assert refused.document["error"].endswith("expecting header 'names-key'")
        assert ask(f"{script.http}/v1/models", names_key="word").document == {"models": ["model"]}
        script.stop()


@pytest.mark.parametrize(("protocol", "port"), [("v1", "http"), ("v2", "http"), ("grpc-v2", "grpc")])
def test_a_transformer_asks_its_predictor(script: KServeScript, tmp_path: Path, protocol: str, port: str) -> None:
    host = script.grpc if port == "grpc" else script.http.removeprefix("http://")
    words = (f"--predictor_host={host}", f"--predictor_protocol={protocol}", "--model_name=double")
    # Without its predictor it would never be ready.
    words = (*words, "--enable_predictor_health_check")
    with KServeScript("transformer", tmp_path, *words, last="double") as transformer:
        if protocol == "v1":
            answer = predict(transformer, "double", {"instances": [[1, 2]]})
            assert answer.document == {"predictions": [[4, 6]], "shifted": True}
            assert predict(transformer, "double", {"instances": [["a"]]}).status == 500
        else:
            tensor = {"name": "x", "shape": [2], "datatype": "INT32", "data": [1, 2]}
            answer = ask(f"{transformer.http}/v2/models/double/infer", {"inputs": [tensor]})
            assert answer.document["outputs"][0]["data"] == [4, 6]
        transformer.stop()


def test_a_transformer_is_ready_only_with_its_predictor(script: KServeScript, tmp_path: Path) -> None:
    host = script.http.removeprefix("http://")
    words = (f"--predictor_host={host}", "--enable_predictor_health_check", "--model_name=resting")
    with KServeScript("transformer", tmp_path, *words, last="") as transformer:
        until(lambda: ask(f"{transformer.http}/v1/models/resting").status == 503)
        assert ask(f"{transformer.http}/v2/models/resting/ready").status != 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_script_of_kfserving(tmp_path: Path, number: int) -> None:
    with KServeScript("kfserving_model", tmp_path, "--model_name=squares", last="squares") as script:
        assert predict(script, "squares", {"instances": [3]}).document == {"predictions": [9]}
        script.stop(number)


@pytest.mark.parametrize(("python", "way"), [pytest.param(sys.executable, OURS, id="alipes"), SDK_WAY])
@pytest.mark.parametrize("with_key", [True, False], ids=["two files", "one file"])
def test_a_certificate_encrypts_http(tmp_path: Path, python: str, way: tuple[str, ...], with_key: bool) -> None:
    authority = Authority(tmp_path)
    files = authority.files("server")
    flags = [f"--ssl_certfile={files.certificate}"]
    if with_key:
        flags.append(f"--ssl_keyfile={files.key}")
    else:
        files.certificate.write_bytes(files.key.read_bytes() + files.certificate.read_bytes())
        flags.append("--enable_grpc=false")
    tls = authority.client_context()
    with KServeScript("transformer", tmp_path, *flags, python=python, way=way, tls=tls) as script:
        assert ask(f"{script.http}/v1/models/model", tls=tls).document == {"name": "model", "ready": True}
        script.stop()


def test_a_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "server.key").touch()
    script = KServeScript("transformer", tmp_path, f"--ssl_keyfile={tmp_path / 'server.key'}")
    assert script.process.wait(TIMEOUT_S) != 0
    assert "ssl_keyfile needs ssl_certfile" in script.output

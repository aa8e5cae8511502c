"""`:predict` of the V1 protocol: the same values as over V2, and refusals with a status and a reason."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper
from support.models import add_model, small_model
from support.python_models import add_python_model
from support.server import ServerProcess
from tritonclient.utils import triton_to_np_dtype

MAX_BATCH = 4
ROWS = 10
# Datatype -> ONNX's type, and the two values of a row.
DATATYPES: dict[str, tuple[int, list[Any]]] = {
    "BOOL": (TensorProto.BOOL, [True, False]),
    "UINT8": (TensorProto.UINT8, [0, 255]),
    "UINT16": (TensorProto.UINT16, [0, 65535]),
    "UINT32": (TensorProto.UINT32, [0, 2**32 - 1]),
    "UINT64": (TensorProto.UINT64, [0, 2**64 - 1]),
    "INT8": (TensorProto.INT8, [-128, 127]),
    "INT16": (TensorProto.INT16, [-32768, 32767]),
    "INT32": (TensorProto.INT32, [-(2**31), 2**31 - 1]),
    "INT64": (TensorProto.INT64, [-(2**63), 2**63 - 1]),
    "FP16": (TensorProto.FLOAT16, [0.1, -65504.0]),
    "BF16": (TensorProto.BFLOAT16, [0.10009765625, -(2.0**127)]),
    "FP32": (TensorProto.FLOAT, [0.1, 3.4e38]),
    "FP64": (TensorProto.DOUBLE, [0.1, -1.7e308]),
    "BYTES": (TensorProto.STRING, ["", 'ž "\n']),
}


def every_datatype() -> Any:
    """Gives each of its inputs back: `IN_FP32` as `OUT_FP32`, all `[batch, 2]`."""

    def ports(side: str) -> list[Any]:
        types = {f"{side}_{name}": onnx for name, (onnx, _) in DATATYPES.items()}
        return [helper.make_tensor_value_info(name, onnx, ["batch", 2]) for name, onnx in types.items()]

    nodes = [helper.make_node("Identity", [f"IN_{name}"], [f"OUT_{name}"]) for name in DATATYPES]
    return small_model(nodes, ports("IN"), ports("OUT"), [])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    limited = f"max_batch_size: {MAX_BATCH}\n"
    add_model(repository, "double", config=limited + "version_policy { all {} }\n", versions=(1, 2))
    add_model(repository, "every", every_datatype(), config=limited)
    add_model(repository, "rows", config="max_batch_size: 0\n")
    add_python_model(repository, "whole", signature="X: FP32[2] -> Y: FP32[2]")
    add_python_model(repository, "open", ECHO_TWICE, signature="X: INT32[-1] -> Y: INT32[-1]")
    signature = "X: FP32[2] -> predict: INT64[1], proba: FP32[2]"
    add_python_model(repository, "methods", METHODS, signature=signature, config=limited)
    add_python_model(repository, "texts", signature="X: BYTES[1] -> Y: BYTES[1]", config="max_batch_size: 8\n")
    return serve_module(repository)


ECHO_TWICE = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=np.concatenate([given(request)] * 2)) for request in requests]
"""

# As models of scikit-learn are served: an output for each method.
METHODS = """
class TritonPythonModel:
    def execute(self, requests):
        rows = [given(request) for request in requests]
        return [answer(predict=row.argmax(1).reshape(-1, 1), proba=row) for row in rows]
"""


def post(
    connection: http.client.HTTPConnection, path: str, body: object, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Status and document of an answer; `path` is that behind `/v1/models/`."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", f"/v1/models/{path}", text, headers or {})
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "application/json"
    return response.status, json.loads(response.read())


def counts(connection: http.client.HTTPConnection, model: str) -> tuple[int, int]:
    """Requests and rows that the highest version of a model has answered."""
    connection.request("GET", f"/v2/models/{model}/stats")
    version = json.loads(connection.getresponse().read())["model_stats"][-1]
    return version["inference_stats"]["success"]["count"], version["inference_count"]


def values(name: str) -> np.ndarray:
    """Rows of a datatype."""
    pair = DATATYPES[name][1]
    return np.array([pair if row % 2 else pair[::-1] for row in range(ROWS)], triton_to_np_dtype(name))


def test_instances_are_rows_of_one_request_and_of_its_statistics(connection: http.client.HTTPConnection) -> None:
    before = counts(connection, "double")
    assert post(connection, "double:predict", {"instances": [[1, 2], [3, 4.5]]}) == (
        200,
        {"predictions": [[2, 4], [6, 9]]},
    )
    after = counts(connection, "double")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 2)


def test_columns_are_answered_with_columns(connection: http.client.HTTPConnection) -> None:
    for inputs in ([[1, 2]], {"X": [[1, 2]]}):
        assert post(connection, "double:predict", {"inputs": inputs}) == (200, {"outputs": [[2, 4]]})


def test_a_version_answers_by_its_number(connection: http.client.HTTPConnection) -> None:
    body = {"instances": [{"X": [1, 2]}], "signature_name": "serving_default"}
    assert post(connection, "double/versions/1:predict", body) == (200, {"predictions": [[2, 4]]})
    status, answer = post(connection, "double/versions/9:predict", body)
    assert (status, "version 9 is not found" in answer["error"]) == (404, True)


@pytest.mark.parametrize("form", ["instances", "inputs"])
def test_every_datatype_has_the_values_of_v2(
    server: ServerProcess, connection: http.client.HTTPConnection, form: str
) -> None:
    columns = {f"IN_{name}": values(name).tolist() for name in DATATYPES}
    rows = [{name: column[row] for name, column in columns.items()} for row in range(ROWS)]
    status, answer = post(connection, "every:predict", {form: rows if form == "instances" else columns})
    assert status == 200, answer
    with triton.InferenceServerClient(server.http) as client:
        for name in DATATYPES:
            found = (
                [row[f"OUT_{name}"] for row in answer["predictions"]]
                if form == "instances"
                else answer["outputs"][f"OUT_{name}"]
            )
            expected = []
            for first in range(0, ROWS, MAX_BATCH):
                inputs = []
                for other in DATATYPES:
                    part = values(other)[first : first + MAX_BATCH]
                    inputs.append(triton.InferInput(f"IN_{other}", list(part.shape), other))
                    inputs[-1].set_data_from_numpy(part)
                expected.append(client.infer("every", inputs).as_numpy(f"OUT_{name}"))
            of_v2 = np.concatenate(expected)
            if name == "BYTES":
                of_v2 = np.vectorize(bytes.decode, otypes=[object])(of_v2)
            assert np.array_equal(np.array(found, of_v2.dtype), of_v2), name


def test_bytes_that_are_no_text_go_in_and_out_as_base64(connection: http.client.HTTPConnection) -> None:
    other = {"b64": base64.b64encode(b"\xff\x00").decode()}
    text = {"b64": base64.b64encode("ž".encode()).decode()}
    assert post(connection, "texts:predict", {"instances": ["a", other, [text]]})[0] == 400
    assert post(connection, "texts:predict", {"instances": [["a"], [other], [text]]}) == (
        200,
        {"predictions": [["a"], [other], ["ž"]]},
    )
    assert post(connection, "texts:predict", {"instances": [{"X": other}]}) == (200, {"predictions": [[other]]})


def test_ten_thousand_instances_are_as_many_full_batches(connection: http.client.HTTPConnection) -> None:
    sent = np.arange(20_000.0).reshape(-1, 2)
    before = counts(connection, "double")
    status, answer = post(connection, "double:predict", {"instances": sent.tolist()})
    assert status == 200, answer
    assert np.array_equal(answer["predictions"], sent * 2)
    after = counts(connection, "double")
    assert (after[0] - before[0], after[1] - before[1]) == (10_000 // MAX_BATCH, 10_000)
    status, answer = post(connection, "double:predict", {"inputs": sent[:9].tolist()})
    assert (status, answer["outputs"]) == (200, (sent[:9] * 2).tolist())


def test_a_body_becomes_no_more_requests_than_the_limit(connection: http.client.HTTPConnection) -> None:
    most = 16 * 1024 * MAX_BATCH
    status, answer = post(connection, "double:predict", {"instances": [[1, 2]] * (most + 1)})
    assert (status, "a body may become 16384 of them" in answer["error"]) == (400, True)


def test_an_open_first_dimension_has_the_instances(connection: http.client.HTTPConnection) -> None:
    before = counts(connection, "rows")
    body = {"instances": [[1, 2], [3, 4], [5, 6]]}
    assert post(connection, "rows:predict", body) == (200, {"predictions": [[2, 4], [6, 8], [10, 12]]})
    assert counts(connection, "rows")[0] - before[0] == 1
    status, answer = post(connection, "open:predict", {"instances": [1, 2, 3]})
    assert (status, "which is not one row for each of 3 instances: ask with 'inputs'" in answer["error"]) == (400, True)
    assert post(connection, "open:predict", {"inputs": [1, 2, 3]}) == (200, {"outputs": [1, 2, 3, 1, 2, 3]})


def test_a_model_without_such_a_dimension_is_sent_whole_instances(connection: http.client.HTTPConnection) -> None:
    before = counts(connection, "whole")
    body = {"instances": [[1, 2], [3, 4], [5, 6]]}
    assert post(connection, "whole:predict", body) == (200, {"predictions": body["instances"]})
    assert counts(connection, "whole")[0] - before[0] == 3
    assert post(connection, "whole:predict", {"inputs": [1, 2]}) == (200, {"outputs": [1, 2]})
    status, answer = post(connection, "whole:predict", {"instances": [1, 2]})
    assert (status, "an instance is all that the model takes at once" in answer["error"]) == (400, True)


def test_a_method_that_predicts_is_the_answer_value_by_value(connection: http.client.HTTPConnection) -> None:
    rows = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [1, 0], [0, 1]]
    expected = [1, 0, 1, 0, 1]
    assert post(connection, "methods:predict", {"instances": rows}) == (200, {"predictions": expected})
    assert post(connection, "methods:predict", {"inputs": {"X": rows}}) == (200, {"outputs": expected})


def test_numbers_that_are_not_finite_come_back_as_null(connection: http.client.HTTPConnection) -> None:
    body = b'{"instances": [[NaN, -Infinity], [3e38, 1]]}'
    assert post(connection, "double:predict", body) == (200, {"predictions": [[None, None], [None, 2]]})


def test_the_id_of_the_head_and_compression_are_as_with_v2(connection: http.client.HTTPConnection) -> None:
    body = gzip.compress(json.dumps({"instances": [[1, 2]]}).encode())
    headers = {"Content-Encoding": "gzip", "Accept-Encoding": "gzip", "X-Request-Id": "of-the-head"}
    connection.request("POST", "/v1/models/double:predict", body, headers)
    response = connection.getresponse()
    assert response.headers["X-Request-Id"] == "of-the-head"
    assert json.loads(gzip.decompress(response.read())) == {"predictions": [[2, 4]]}


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "The document is empty"),
        (b'{"instances": [[1, 2]', "line 1, column 22"),
        (b"[[1, 2]]", "expected a JSON object with 'instances' or 'inputs'"),
        (b"{}", "neither 'instances' nor 'inputs'"),
        (b'{"instances": []}', "empty list"),
        (b'{"instances": [[1, 2], [3]]}', "'instances[1]' has 1 items where others have 2"),
        (b'{"instances": [[1, 2, 3]]}', "has shape [1,3], model 'double' takes [-1,2]"),
        (b'{"instances": [["1", 2]]}', 'value 0 of its data, counted from 0, is "1"'),
        (b'{"instances": [[1e39, 2]]}', "1e39"),
        (b'{"instances": [{"Z": [1, 2]}]}', "has no input 'Z': it has 'X'"),
        (b'{"instances": [{"X": [1, 2]}, {}]}', "'instances[1]' has no 'X', which 'instances[0]' has"),
        (b'{"instances": [[1, 2]], "signature_name": "classify"}', "has one signature"),
        (b'{"instances": [[1, 2]], "inputs": [[1, 2]]}', "both"),
    ],
)
def test_bad_input_is_refused_with_the_reason(connection: http.client.HTTPConnection, body: bytes, part: str) -> None:
    status, answer = post(connection, "double:predict", body)
    assert (status, list(answer)) == (400, ["error"])
    assert part in answer["error"]

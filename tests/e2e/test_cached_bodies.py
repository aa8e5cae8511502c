"""A body that is posted again is answered as it was, without being read, where that answer is the right one."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.endpoints import HttpEndpoint
from support.models import add_model, times
from support.python_models import add_python_model
from support.server import ServerProcess
from tritonclient.utils import shared_memory

Serve = Callable[..., ServerProcess]

CACHED = "response_cache { enable: true }\n"
LOCAL = "--cache-config=local,size=1048576"

# Y is X, N counts the executions, and P has the parameters of the request.
COUNTS = """
class TritonPythonModel:
    def initialize(self, args):
        self.executions = 0

    def execute(self, requests):
        self.executions += len(requests)
        return [
            answer(Y=given(one), N=np.array([self.executions], np.int32), P=np.array([one.parameters()], np.object_))
            for one in requests
        ]
"""
SIGNATURE = "X: INT32[-1] -> Y: INT32[-1], N: INT32[1], P: BYTES[1]"
INFER = "/v2/models/counts/infer"


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    return serve(repository, LOCAL, "--allow-client-shm=true", "--http-header-forward-pattern=^color$")


@pytest.fixture
def endpoint(server: ServerProcess) -> Iterator[HttpEndpoint]:
    with HttpEndpoint(server) as opened:
        yield opened


def body(*values: int, **more: Any) -> bytes:
    x = {"name": "X", "datatype": "INT32", "shape": [len(values)], "data": list(values)}
    return json.dumps({"inputs": [x], **more}).encode()


def executions(content: bytes) -> int:
    """The number of the execution that an answer comes from."""
    outputs = {output["name"]: output for output in json.loads(content)["outputs"]}
    return int(outputs["N"]["data"][0])


def post(endpoint: HttpEndpoint, content: bytes, path: str = INFER, **headers: str) -> bytes:
    response, answer = endpoint.call(
        "POST", path, content, {name.replace("_", "-"): value for name, value in headers.items()}
    )
    assert response.status == 200, answer
    return answer


def hits(endpoint: HttpEndpoint, model: str = "counts") -> int:
    return int(endpoint.statistics(model)["inference_stats"]["cache_hit"]["count"])


def test_a_repeated_body_gets_identical_bytes_and_counts_as_hit(endpoint: HttpEndpoint) -> None:
    answers = {post(endpoint, body(1, 2)) for _ in range(5)}
    assert len(answers) == 1
    statistics = endpoint.statistics("counts")
    tallies = statistics["inference_stats"]
    assert (tallies["cache_hit"]["count"], tallies["cache_miss"]["count"], statistics["execution_count"]) == (4, 1, 1)
    assert (tallies["success"]["count"], statistics["inference_count"]) == (5, 1)


def test_the_same_bytes_with_another_header_are_another_request(endpoint: HttpEndpoint) -> None:
    tensor = np.array([3, 4], np.int32).tobytes()
    x = {"name": "X", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": len(tensor)}}
    head = json.dumps({"inputs": [x], "outputs": [{"name": "N"}, {"name": "Y"}]}).encode()
    for _ in range(4):
        assert executions(post(endpoint, head + tensor, Inference_Header_Content_Length=str(len(head)))) == 1
    shorter = {"Inference-Header-Content-Length": str(len(head) - 1)}
    for headers in ({}, shorter):
        assert endpoint.call("POST", INFER, head + tensor, headers)[0].status >= 400
    assert hits(endpoint) == 3


def test_binary_outputs_come_again_behind_the_same_header(endpoint: HttpEndpoint) -> None:
    request_body = body(5, 6, outputs=[{"name": name, "parameters": {"binary_data": True}} for name in ("Y", "N")])
    answers = [endpoint.call("POST", INFER, request_body) for _ in range(4)]
    lengths = {response.getheader("Inference-Header-Content-Length") for response, _ in answers}
    assert len(lengths) == len({content for _, content in answers}) == 1
    assert answers[3][1].endswith(np.array([5, 6, 1], np.int32).tobytes())
    assert answers[3][0].getheader("Content-Type") == "application/octet-stream"


def test_an_answer_carries_the_id_of_its_own_request(endpoint: HttpEndpoint) -> None:
    for number in [1, 2, 2, 2, 3]:
        answer = json.loads(post(endpoint, body(1, id=f"r{number}")))
        assert answer["id"] == f"r{number}"
    assert "id" not in json.loads(post(endpoint, body(1)))
    assert hits(endpoint) == 5


def test_compression_changes_neither_request_nor_answer(endpoint: HttpEndpoint) -> None:
    plain = {post(endpoint, body(8)) for _ in range(3)}
    packed = gzip.compress(body(8))
    assert {post(endpoint, packed, Content_Encoding="gzip") for _ in range(2)} == plain
    assert {gzip.decompress(post(endpoint, body(8), Accept_Encoding="gzip")) for _ in range(2)} == plain
    assert hits(endpoint) == 6


def test_what_headers_add_makes_another_request(endpoint: HttpEndpoint) -> None:
    for _ in range(3):
        assert "red" not in post(endpoint, body(1)).decode()
        assert "red" in post(endpoint, body(1), color="red").decode()
        assert "blue" in post(endpoint, body(1), color="blue").decode()
    assert endpoint.statistics("counts")["execution_count"] == 3


def test_a_region_is_read_again_though_the_body_is_the_same(endpoint: HttpEndpoint) -> None:
    key = f"/alipes-bodies-{os.getpid()}"
    handle = shared_memory.create_shared_memory_region("x", key, 8)
    region = json.dumps({"key": key, "offset": 0, "byte_size": 8}).encode()
    where = {"shared_memory_region": "x", "shared_memory_byte_size": 8}
    x = {"name": "X", "datatype": "INT32", "shape": [2], "parameters": where}
    request_body = json.dumps({"inputs": [x]}).encode()
    try:
        assert endpoint.call("POST", "/v2/systemsharedmemory/region/x/register", region)[0].status == 200
        for values in ([1, 2], [1, 2], [1, 2], [3, 4], [1, 2]):
            shared_memory.set_shared_memory_region(handle, [np.array(values, np.int32)])
            outputs = {output["name"]: output for output in json.loads(post(endpoint, request_body))["outputs"]}
            assert outputs["Y"]["data"] == values
        endpoint.call("POST", "/v2/systemsharedmemory/region/x/unregister")
        assert endpoint.call("POST", INFER, request_body)[0].status == 404, "and without its region it is refused"
    finally:
        shared_memory.destroy_shared_memory_region(handle)


def test_an_output_is_written_into_its_region_every_time(endpoint: HttpEndpoint) -> None:
    key = f"/alipes-outputs-{os.getpid()}"
    handle = shared_memory.create_shared_memory_region("y", key, 8)
    region = json.dumps({"key": key, "offset": 0, "byte_size": 8}).encode()
    where = {"shared_memory_region": "y", "shared_memory_byte_size": 8}
    request_body = body(7, 9, outputs=[{"name": "Y", "parameters": where}])
    try:
        assert endpoint.call("POST", "/v2/systemsharedmemory/region/y/register", region)[0].status == 200
        for _ in range(4):
            shared_memory.set_shared_memory_region(handle, [np.zeros(2, np.int32)])
            post(endpoint, request_body)
            assert shared_memory.get_contents_as_numpy(handle, np.int32, [2]).tolist() == [7, 9]
        endpoint.call("POST", "/v2/systemsharedmemory/region/y/unregister")
    finally:
        shared_memory.destroy_shared_memory_region(handle)


def test_a_restricted_endpoint_refuses_cached_bodies_without_key(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    with HttpEndpoint(serve(repository, LOCAL, "--http-restricted-api=inference:key=word")) as endpoint:
        for _ in range(3):
            post(endpoint, body(1), key="word")
        assert endpoint.call("POST", INFER, body(1))[0].status == 403
        assert endpoint.call("POST", INFER, body(1), {"key": "other"})[0].status == 403


def test_versions_and_loads_answer_for_themselves(repository: Path, serve: Serve) -> None:
    folder = add_model(repository, "m", times(2.0), config=f"max_batch_size: 8 version_policy {{ all {{}} }} {CACHED}")
    (folder / "2").mkdir()
    (folder / "2" / "model.onnx").write_bytes(times(3.0).SerializeToString())
    x = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 1]}
    request_body = json.dumps({"inputs": [x]}).encode()
    server = serve(repository, LOCAL, "--model-control-mode=explicit", "--load-model=m")

    def values(endpoint: HttpEndpoint, version: int) -> list[list[float]]:
        path = f"/v2/models/m/versions/{version}/infer"
        return [json.loads(post(endpoint, request_body, path))["outputs"][0]["data"] for _ in range(4)]

    with HttpEndpoint(server) as endpoint:
        assert (values(endpoint, 1), values(endpoint, 2)) == ([[2, 2]] * 4, [[3, 3]] * 4)
        (folder / "1" / "model.onnx").write_bytes(times(5.0).SerializeToString())
        endpoint.load("m")
        assert (values(endpoint, 1), values(endpoint, 2)) == ([[5, 5]] * 4, [[3, 3]] * 4)
        endpoint.unload("m")
        assert endpoint.call("POST", "/v2/models/m/infer", request_body)[0].status == 404


def test_a_verbose_log_tells_of_every_answer(server: ServerProcess, endpoint: HttpEndpoint) -> None:
    for _ in range(3):
        post(endpoint, body(1))
    endpoint.call("POST", "/v2/logging", b'{"log_verbose_level": 1}')
    post(endpoint, body(1))
    server.wait_for_output("model 'counts' version 1 answered after")

"""curl, as people try a server out: health, metadata, JSON, binary tensors, keep-alive."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.curl import curl
from support.models import add_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

ROWS = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository)


def test_health_and_metadata(server: ServerProcess) -> None:
    code = curl("-o", "/dev/null", "-w", "%{http_code}", f"http://{server.http}/v2/health/ready")
    assert code == b"200"
    metadata = json.loads(curl("--fail-with-body", f"http://{server.http}/v2/models/double"))
    assert [port["name"] for port in metadata["inputs"]] == ["X"]


def test_json_in_and_out_over_one_connection(server: ServerProcess) -> None:
    tensor = {"name": "X", "shape": [2, 2], "datatype": "FP32", "data": ROWS.tolist()}
    url = f"http://{server.http}/v2/models/double/infer"
    body = json.dumps({"inputs": [tensor]})
    answers = curl(
        "--fail-with-body",
        "-d",
        body,
        url,
        "-w",
        "\n%{num_connects}\n",
        "--next",
        "-sS",
        "-d",
        body,
        url,
        "-w",
        "\n%{num_connects}\n",
    )
    first, connects, second, reconnects = answers.decode().split()
    assert json.loads(first) == json.loads(second)
    assert json.loads(first)["outputs"][0]["data"] == [2, 4, 6, 8]
    assert (connects, reconnects) == ("1", "0")


@pytest.mark.parametrize("chunked", [False, True])
def test_binary_tensors(server: ServerProcess, tmp_path: Path, chunked: bool) -> None:
    header = json.dumps(
        {
            "inputs": [
                {"name": "X", "shape": [2, 2], "datatype": "FP32", "parameters": {"binary_data_size": ROWS.nbytes}}
            ],
            "outputs": [{"name": "Y", "parameters": {"binary_data": True}}],
        }
    ).encode()
    (tmp_path / "body").write_bytes(header + ROWS.tobytes())
    answer = curl(
        "--fail-with-body",
        "--data-binary",
        f"@{tmp_path / 'body'}",
        "-H",
        f"Inference-Header-Content-Length: {len(header)}",
        *(("-H", "Transfer-Encoding: chunked") if chunked else ()),
        f"http://{server.http}/v2/models/double/infer",
    )
    np.testing.assert_array_equal(np.frombuffer(answer[-ROWS.nbytes :], np.float32).reshape(2, 2), ROWS * 2)


def test_an_error_is_a_json_object(server: ServerProcess) -> None:
    refused = curl("-w", " %{http_code}", "-d", "{}", f"http://{server.http}/v2/models/nobody/infer").decode()
    text, code = refused.rsplit(" ", 1)
    assert (list(json.loads(text)), code) == (["error"], "404")

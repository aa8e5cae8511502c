"""Asking models that take one text and give one text, over HTTP and over gRPC streams."""

from __future__ import annotations

import http.client
import json
import queue
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as grpc_client

from support.server import ServerProcess
from support.waiting import TIMEOUT_S

_CONFIG = """
backend: "python"
input [{{ name: "HOW" data_type: TYPE_STRING dims: [ 1 ] }}]
output [{{ name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }}]
instance_group [{{ count: 1 kind: KIND_CPU }}]
{more}
"""

# In front of every model's code. `text` reads the request; `good` makes an answer.
_PRELUDE = """
import asyncio, gc, json, os, queue, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def text(request):
    return pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0].decode()

def good(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(value)], dtype=object))])

"""


def add_model(repository: Path, name: str, code: str, *, decoupled: bool = False, more: str = "") -> None:
    """Adds a Python model to a repository."""
    policy = "model_transaction_policy { decoupled: true }\n" if decoupled else ""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(_PRELUDE + code)
    (folder / "config.pbtxt").write_text(_CONFIG.format(more=policy + more))


def ask(server: ServerProcess, model: str, how: str) -> tuple[int, str]:
    """Status, and the answer or the error."""
    tensor = {"name": "HOW", "shape": [1], "datatype": "BYTES", "data": [how]}
    connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
    try:
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
        answer = connection.getresponse()
        document = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status != 200:
        return answer.status, document["error"]
    outputs = {output["name"]: output["data"] for output in document["outputs"]}
    return answer.status, outputs["OUT"][0] if outputs else ""


def stream_to_end(server: ServerProcess, model: str, texts: list[str]) -> list[str]:
    """Everything that requests over one gRPC stream bring until its end: answers, and errors behind ``!``."""
    came: list[tuple[Any, Any]] = []
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: came.append((result, error)))
        for how in texts:
            client.async_stream_infer(model, [_tensor(how)])
        client.stop_stream()
    return [f"!{error.message()}" if error else result.as_numpy("OUT")[0].decode() for result, error in came]


def stream(server: ServerProcess, model: str, how: str) -> list[str]:
    """Everything that a request over a gRPC stream brings: answers, errors behind ``!``, and ``end``."""
    came: queue.Queue[tuple[Any, Any]] = queue.Queue()
    seen = []
    with grpc_client.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: came.put((result, error)))
        client.async_stream_infer(model, [_tensor(how)], enable_empty_final_response=True)
        while True:
            result, error = came.get(timeout=TIMEOUT_S)
            if error is not None:
                seen.append(f"!{error.message()}")
                break
            answer = result.get_response()
            if answer.outputs:
                seen.append(result.as_numpy("OUT")[0].decode())
            if answer.parameters["triton_final_response"].bool_param:
                seen.append("end")
                break
        client.stop_stream()
    return seen


def _tensor(text: str) -> grpc_client.InferInput:
    tensor = grpc_client.InferInput("HOW", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([text], dtype=object))
    return tensor

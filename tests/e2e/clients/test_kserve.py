"""The inference clients of the KServe SDK, in an environment of their own: what they require is not what we require."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.models import add_model
from support.server import ServerProcess

PYTHON = ROOT / ".venv-clients" / "kserve" / "bin" / "python"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        not (PYTHON.parents[1] / "made").exists(), reason="the KServe SDK is not there: `make clients` brings it"
    ),
    pytest.mark.timeout(300),
]

# The SDK takes long to import, so one process asks everything.
PROGRAM = """
import asyncio, json, sys
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

def request(binary):
    given = InferInput(name="X", shape=[2, 2], datatype="FP32")
    given.set_data_from_numpy(np.array([[1, 2], [3, 4]], np.float32), binary_data=binary)
    return InferRequest(model_name="double", infer_inputs=[given])

def told(ready, response):
    found = np.asarray(response.outputs[0].as_numpy())
    return {"ready": ready, "model": response.model_name, "Y": found.ravel().tolist()}

async def rest(address, binary):
    client, base = InferenceRESTClient(RESTConfig(protocol="v2", timeout=60)), f"http://{address}"
    # Its questions about the server's health want a JSON body, which Triton does not send and so we do not.
    ready = await client.is_model_ready(base, "double")
    response = await client.infer(base, request(binary), model_name="double")
    await client.close()
    return told(ready, response)

async def grpc(address, binary):
    client = InferenceGRPCClient(url=address, timeout=60)
    ready = await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("double")
    response = await client.infer(request(binary))
    await client.close()
    return told(ready, response)

async def main(http_address, grpc_address):
    for binary in (False, True):
        print(json.dumps(await rest(http_address, binary)))
        print(json.dumps(await grpc(grpc_address, binary)))

asyncio.run(main(*sys.argv[1:]))
"""


def test_both_clients_find_the_model_ready_and_get_its_answer(
    repository: Path, serve: Callable[..., ServerProcess]
) -> None:
    add_model(repository, "double")
    server = serve(repository)
    ran = subprocess.run(
        [str(PYTHON), "-c", PROGRAM, server.http, server.grpc],
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    reports = [json.loads(line) for line in ran.stdout.splitlines()]
    assert reports == [{"ready": True, "model": "double", "Y": [2, 4, 6, 8]}] * 4

"""`alipes.Predictor` in front of servers of others: NVIDIA's Triton, MLServer, and a predictor of the KServe SDK."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes import Predictor
from alipes.errors import Internal, NotReady
from support.kserve_facts import SDK_PYTHON
from support.kserve_script import KServeScript, ask
from support.ports import free_ports
from support.real_triton import MISSING, RealTriton, is_there
from support.switched import environment_of
from support.waiting import TIMEOUT_S, until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

ROWS = np.arange(6.0).reshape(3, 2)

TWICE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        if x.size and x.min() < 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)])
"""

CONFIG = """
backend: "python" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP64 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP64 dims: [ 2 ] } ]
instance_group { kind: KIND_CPU count: 1 }
"""

MLSERVER = """
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Doubler(MLModel):
    async def predict(self, payload):
        rows = NumpyCodec.decode_input(payload.inputs[0]) * 2
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", rows)])
"""

SDK = """
import argparse

from kserve import InferOutput, InferResponse, Model, ModelServer, model_server


class Doubler(Model):
    def __init__(self):
        super().__init__("twice")
        self.load()

    def predict(self, payload, headers=None):
        rows = payload.inputs[0].as_numpy() * 2
        tensor = InferOutput("y", list(rows.shape), "FP64")
        tensor.set_data_from_numpy(rows, binary_data=True)
        return InferResponse(payload.id or "1", self.name, [tensor])


if __name__ == "__main__":
    argparse.ArgumentParser(parents=[model_server.parser]).parse_args()
    ModelServer().start([Doubler()])
"""


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    if not is_there():
        pytest.skip(MISSING)
    repository = tmp_path_factory.mktemp("models")
    version = repository / "twice" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(TWICE)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    with RealTriton(repository, tmp_path_factory.mktemp("triton")) as server:
        yield server.http, server.grpc


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    environment = environment_of("mlserver")
    if environment is None:
        pytest.skip("mlserver is not there: `make clients` brings it")
    folder = tmp_path_factory.mktemp("mlserver")
    (folder / "doubler.py").write_text(MLSERVER)
    (folder / "model-settings.json").write_text(json.dumps({"name": "twice", "implementation": "doubler.Doubler"}))
    http, grpc, metrics = free_ports(3)
    settings = {"HTTP_PORT": http, "GRPC_PORT": grpc, "METRICS_PORT": metrics, "PARALLEL_WORKERS": 0}
    variables = {f"MLSERVER_{name}": str(value) for name, value in settings.items()} | {"MLSERVER_HOST": "127.0.0.1"}
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [environment / "bin" / "mlserver", "start", folder],
        stdout=log,
        stderr=log,
        cwd=folder,
        env={**os.environ, **variables, "MLSERVER_METRICS_DIR": str(folder / "metrics")},
    )

    def is_ready() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return ask(f"http://127.0.0.1:{http}/v2/models/twice/ready").status == 200
        except OSError:
            return False

    try:
        until(is_ready)
        yield f"127.0.0.1:{http}", f"127.0.0.1:{grpc}"
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
        log.close()


@pytest.mark.xdist_group("real_triton")
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_real_triton_may_be_the_predictor(triton: tuple[str, str], scheme: str) -> None:
    http, grpc = triton
    predictor = Predictor("twice", f"{scheme}://{grpc if scheme == 'grpc' else http}")
    assert predictor.is_ready()
    assert predictor.max_batch_size() == 8
    assert predictor.infer({"x": ROWS})["y"].tolist() == (2 * ROWS).tolist()
    assert predictor.infer(ROWS).tolist() == (2 * ROWS).tolist()
    with pytest.raises(Internal, match="negative"):
        predictor.infer({"x": -ROWS - 1})
    with pytest.raises(Internal, match="refuses the call"):
        predictor.infer({"x": np.zeros((1, 3))})
    with pytest.raises(NotReady, match="predictor 'nobody' at"):
        Predictor("nobody", f"{scheme}://{grpc if scheme == 'grpc' else http}").infer({"x": ROWS})


def test_mlserver_may_be_the_predictor_over_grpc(mlserver: tuple[str, str]) -> None:
    http, grpc = mlserver
    predictor = Predictor("twice", f"grpc://{grpc}")
    assert predictor.is_ready()
    assert predictor.max_batch_size() == 0
    # It declares no inputs, so the array says its own datatype and shape.
    assert predictor.infer({"x": ROWS})["y"].tolist() == (2 * ROWS).tolist()
    with pytest.raises(NotReady, match="predictor 'nobody' at"):
        Predictor("nobody", f"grpc://{grpc}").infer({"x": ROWS})
    with pytest.raises(Internal, match="failed: HTTP status 500"):  # it reads no binary tensors there
        Predictor("twice", f"http://{http}").infer({"x": ROWS})


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_predictor_of_the_kserve_sdk_may_be_the_predictor(sdk: KServeScript, scheme: str) -> None:
    predictor = Predictor("twice", f"grpc://{sdk.grpc}" if scheme == "grpc" else sdk.http)
    assert predictor.is_ready()
    assert predictor.infer({"x": ROWS})["y"].tolist() == (2 * ROWS).tolist()


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KServeScript]:
    if not (SDK_PYTHON.parents[1] / "made").exists():
        pytest.skip("the KServe SDK is not there: `make clients` brings it")
    folder: Path = tmp_path_factory.mktemp("sdk")
    (folder / "twice.py").write_text(SDK)
    with KServeScript(str(folder / "twice"), folder, last="twice", python=str(SDK_PYTHON), way=()) as script:
        yield script

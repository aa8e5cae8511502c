"""An endpoint around a model, as its users write it: a typed body, a session, one worker."""

import os

import numpy as np
import onnxruntime
from fastapi import FastAPI
from pydantic import BaseModel

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL_PATH"], options, providers=["CPUExecutionProvider"])
app = FastAPI()


class Tensor(BaseModel):
    """A tensor in the V2 protocol's JSON form."""

    name: str
    datatype: str
    shape: list[int]
    data: list[float]


class InferRequest(BaseModel):
    """A request with one input."""

    inputs: list[Tensor]


class InferResponse(BaseModel):
    """An answer with one output."""

    model_name: str
    outputs: list[Tensor]


@app.get("/v2/health/ready")
async def ready() -> None:
    """The session is loaded before the application is."""


@app.post("/v2/models/mlp/infer")
async def infer(request: InferRequest) -> InferResponse:
    """Runs one request; on the event loop, which is faster here than a hop to its thread pool."""
    tensor = request.inputs[0]
    values = np.asarray(tensor.data, np.float32).reshape(tensor.shape)
    output = session.run(["y"], {"x": values})[0]
    answer = Tensor(name="y", datatype="FP32", shape=list(output.shape), data=output.ravel().tolist())
    return InferResponse(model_name="mlp", outputs=[answer])

"""Gives back what a request says beside its tensors."""

import json

import numpy as np
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

config = TritonConfig(http_header_forward_pattern="header[_0-9].*", grpc_header_forward_pattern="header[_0-9].*")


def infer(requests):
    answers = []
    for request in requests:
        parameters = {name: value for name, value in request.parameters.items() if not name.startswith("triton_")}
        text = json.dumps([sorted(parameters.items()), sorted(request.requested_output_names)])
        rows = len(request["x"])
        answers.append({"said": np.array([[text.encode()]] * rows), "x": request["x"]})
    return answers


with Triton(config=config) as triton:
    triton.bind(
        model_name="Said",
        infer_func=infer,
        inputs=[Tensor(name="x", dtype=np.int64, shape=(1,))],
        outputs=[Tensor(name="said", dtype=np.bytes_, shape=(1,)), Tensor(name="x", dtype=np.int64, shape=(1,))],
        config=ModelConfig(max_batch_size=4),
    )
    triton.serve()

"""Serves models that share what is in this process; one more is bound while the server runs, without a `with`."""

import threading

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton

state = {"factor": np.float32(1)}
both = threading.Barrier(2, timeout=60)
TENSOR = {"dtype": np.float32, "shape": (1,)}


@batch
def multiply(x):
    return {"y": x * state["factor"]}


@batch
def set_factor(x):
    state["factor"] = x[0, 0]
    return {"y": x}


def side_by_side(requests):
    both.wait()  # returns once two instances are here at the same time
    return [{"y": request["x"]} for request in requests]


async def asynchronous(requests):
    return [{"y": request["x"] + 1} for request in requests]


def bind(triton, name, function, **options):
    tensors = {"inputs": [Tensor(name="x", **TENSOR)], "outputs": [Tensor(name="y", **TENSOR)]}
    triton.bind(name, function, **tensors, config=ModelConfig(max_batch_size=1), **options)


triton = Triton()
bind(triton, "multiply", multiply)
bind(triton, "set-factor", set_factor)
bind(triton, "side.by.side", [side_by_side, side_by_side])
triton.run()
bind(triton, "asynchronous", asynchronous, strict=True, model_version=3)
triton.serve()

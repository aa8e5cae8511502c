"""Serves sums and differences; a factor may be left out."""

import numpy as np
from pytriton.decorators import batch, fill_optionals, group_by_keys
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton


@batch
def add_sub(**inputs):
    a_batch, b_batch = inputs.values()
    return {"add": a_batch + b_batch, "sub": a_batch - b_batch}


@fill_optionals(factor=np.array([1.0], np.float32))
@group_by_keys
@batch
def scaled(a, b, factor, bias=None):
    total = factor * (a + b)
    return [total if bias is None else total + bias]


VECTOR = {"dtype": np.float32, "shape": (-1,)}

with Triton() as triton:
    triton.bind(
        model_name="AddSub",
        infer_func=add_sub,
        inputs=[Tensor(**VECTOR), Tensor(**VECTOR)],
        outputs=[Tensor(name="add", **VECTOR), Tensor(name="sub", **VECTOR)],
        config=ModelConfig(max_batch_size=128),
        strict=True,
    )
    triton.bind(
        model_name="Scaled",
        infer_func=scaled,
        inputs=[
            Tensor(name="a", **VECTOR),
            Tensor(name="b", **VECTOR),
            Tensor(name="factor", dtype=np.float32, shape=(1,), optional=True),
            Tensor(name="bias", optional=True, **VECTOR),
        ],
        outputs=[Tensor(name="total", **VECTOR)],
        config=ModelConfig(max_batch_size=16, batcher=DynamicBatcher(max_queue_delay_microseconds=50_000)),
    )
    triton.serve()

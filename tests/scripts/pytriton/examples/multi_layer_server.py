"""Serves several layers, with the nonlinearity that a request names: a parameter that one batch may not mix."""

import numpy as np
from pytriton.decorators import ConstantPadder, batch, first_value, group_by_values
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton

LAYERS = [np.eye(3, k=shift, dtype=np.float32) + 0.5 for shift in range(3)]
BENDS = {b"relu": lambda x: np.maximum(x, 0), b"tanh": np.tanh}
calls = []


@batch
@group_by_values("bend", "repeats", pad_fn=ConstantPadder(-1))
@first_value("bend", "repeats")
def infer(x, bend, repeats):
    calls.append(len(x))
    for layer in LAYERS:
        x = BENDS[bend](x @ layer)
    return {"y": np.repeat(x, repeats, axis=1)}


with Triton() as triton:
    triton.bind(
        model_name="Layers",
        infer_func=infer,
        inputs=[
            Tensor(name="x", dtype=np.float32, shape=(3,)),
            Tensor(name="bend", dtype=np.bytes_, shape=(1,)),
            Tensor(name="repeats", dtype=np.int32, shape=(1,)),
        ],
        outputs=[Tensor(name="y", dtype=np.float32, shape=(-1,))],
        config=ModelConfig(max_batch_size=16, batcher=DynamicBatcher(max_queue_delay_microseconds=1000)),
    )
    triton.serve()

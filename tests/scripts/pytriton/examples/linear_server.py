"""Serves one layer of weights: an object with a method, whose weights stay in this process."""

import numpy as np
from pytriton.decorators import batch, pad_batch, triton_context
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton

WIDTH, CLASSES = 20, 5


class Linear:
    """Its weights are drawn once."""

    def __init__(self, seed):
        self.weights = np.random.default_rng(seed).normal(size=(WIDTH, CLASSES)).astype(np.float32)
        self.rows = set()

    @batch
    @pad_batch
    def __call__(self, values):
        self.rows.add(len(values))
        return [values @ self.weights]

    @batch
    @triton_context
    def seen(self, **inputs):
        context = inputs["triton_context"]
        name = context.model_configs[self.seen].model_name
        text = f"{name} {sorted(self.rows)}".encode()
        return {"rows": np.full((len(inputs["any"]), 1), text, np.object_)}


linear = Linear(5)
with Triton() as triton:
    triton.bind(
        model_name="Linear",
        infer_func=linear,
        inputs=[Tensor(name="values", dtype=np.float32, shape=(WIDTH,))],
        outputs=[Tensor(name="scores", dtype=np.float32, shape=(CLASSES,))],
        config=ModelConfig(max_batch_size=8, batcher=DynamicBatcher(preferred_batch_size=[4])),
    )
    triton.bind(
        model_name="Seen",
        infer_func=linear.seen,
        inputs=[Tensor(name="any", dtype=np.int32, shape=(1,))],
        outputs=[Tensor(name="rows", dtype=bytes, shape=(1,))],
    )
    triton.serve()

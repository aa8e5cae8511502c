"""Gives back what it is sent, of every kind, in batches and without."""

import numpy as np
from pytriton.decorators import batch, sample
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton

KINDS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
KINDS += [np.float16, np.float32, np.float64, bytes, np.bytes_, object]


@batch
def identity(**inputs):
    return inputs


@sample
def one_by_one(sequence):
    return {"sequence": sequence}


with Triton() as triton:
    tensors = [Tensor(name=f"t{number}", dtype=kind, shape=(-1,)) for number, kind in enumerate(KINDS)]
    triton.bind("Identity", identity, inputs=tensors, outputs=tensors, config=ModelConfig(max_batch_size=16))
    sequence = [Tensor(name="sequence", dtype=bytes, shape=(-1,))]
    triton.bind("OneByOne", one_by_one, inputs=sequence, outputs=sequence, config=ModelConfig(batching=False))
    triton.serve()

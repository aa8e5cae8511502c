"""Serves decoupled models: a generator, an asynchronous one, and one that fails half-way."""

import asyncio

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton


@batch
def count(n):
    for value in range(int(n.max())):
        yield {"value": np.full_like(n, value)}


async def count_asynchronously(requests):
    for value in range(int(requests[0]["n"].max())):
        yield [{"value": np.full_like(request["n"], value)} for request in requests]
        await asyncio.sleep(0)


def fail(requests):
    yield [{"value": request["n"]} for request in requests]
    raise ValueError("no more")


with Triton() as triton:
    for name, function in {"count": count, "asynchronous": count_asynchronously, "fail": fail}.items():
        triton.bind(
            name,
            function,
            inputs=[Tensor(name="n", dtype=np.int32, shape=(1,))],
            outputs=[Tensor(name="value", dtype=np.int32, shape=(1,))],
            config=ModelConfig(max_batch_size=8, decoupled=True),
        )
    triton.serve()

"""Prints what PyTriton's configurations of models become, as JSON.

The script imports `pytriton` alone. Run by an interpreter that has PyTriton, it prints the facts that
`tests/vectors/pytriton` keeps; run by `python -m alipes.compat pytriton`, what alipes makes of the same calls.
"""

from __future__ import annotations

import numpy as np
from noting import fact, print_facts
from pytriton.model_config import DeviceKind, DynamicBatcher, ModelConfig, QueuePolicy, Tensor, TimeoutAction
from pytriton.model_config.common import ModelWarmup, WarmupInput, generate_warmup_data
from pytriton.model_config.generator import ModelConfigGenerator
from pytriton.model_config.parser import ModelConfigParser
from pytriton.model_config.triton_model_config import ResponseCache, TensorSpec, TritonModelConfig
from pytriton.proxy.types import Request, Response


def config(**changes):
    """A model with two inputs and two outputs."""
    given = {
        "model_name": "m",
        "max_batch_size": 16,
        "inputs": [
            TensorSpec("a", (2,), np.float32),
            TensorSpec("b", (2,), np.float32),
            TensorSpec("c", (-1,), np.int32, optional=True),
        ],
        "outputs": [TensorSpec("x", (2,), np.float32), TensorSpec("y", (2,), np.float32)],
    }
    return TritonModelConfig(**{**given, **changes})


def configurations():
    policy = QueuePolicy(TimeoutAction.DELAY, 5, True, 7)
    full = DynamicBatcher(100, [2, 4], True, 2, 1, policy, {1: QueuePolicy(), 2: policy})
    made = {
        "plain": config(),
        "no batches": config(batching=False),
        "batcher": config(batcher=DynamicBatcher()),
        "full batcher": config(batcher=full),
        "decoupled": config(decoupled=True),
        "cached": config(response_cache=ResponseCache(enable=True)),
        "instances": config(instance_group={DeviceKind.KIND_CPU: 3}),
        "parameters": config(backend_parameters={"p": 5}),
        "no tensors": TritonModelConfig("m"),
        "texts": TritonModelConfig(
            "m", inputs=[TensorSpec("s", (-1,), one) for one in (bytes, object, np.bytes_, np.object_)]
        ),
        "types": TritonModelConfig(
            "m",
            outputs=[
                TensorSpec(t, (1,), getattr(np, t))
                for t in (
                    "bool_",
                    "int8",
                    "int16",
                    "int32",
                    "int64",
                    "uint8",
                    "uint16",
                    "uint32",
                    "uint64",
                    "float16",
                    "float32",
                    "float64",
                )
            ],
        ),
        "warmup": config(model_warmup=[ModelWarmup("w", 2, {"a": WarmupInput(np.float32, (2,), zero_data=True)}, 3)]),
        "size 0": config(max_batch_size=0),
        "level": config(batcher=DynamicBatcher(priority_levels=1, default_priority_level=2)),
        "no levels": config(batcher=DynamicBatcher(priority_queue_policy={1: policy})),
        "levels": config(batcher=DynamicBatcher(priority_levels=1, priority_queue_policy={3: policy})),
        "optional outputs": TritonModelConfig("m", outputs=[TensorSpec("x", (1,), np.int8, True)]),
        "warmup of nothing": config(model_warmup=[ModelWarmup("w", 2, {"a": WarmupInput(np.float32, (2,))}, 3)]),
        "warmup of no shape": config(
            model_warmup=[ModelWarmup("w", 2, {"a": WarmupInput(np.float32, (), zero_data=True)}, 3)]
        ),
    }
    for name, one in made.items():
        fact(f"generator: {name}", lambda c=one: ModelConfigGenerator(c).get_config())


def parsed():
    served = {"name": "m", "max_batch_size": 8, "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": ["2", "-1"]}]}
    read = {
        "plain": served,
        "no batches": {"name": "m"},
        "batcher": {**served, "dynamic_batching": {"preferred_batch_size": [4], "max_queue_delay_microseconds": "7"}},
        "policies": {
            **served,
            "dynamic_batching": {
                "priority_levels": "2",
                "default_queue_policy": {"timeout_action": "DELAY", "default_timeout_microseconds": "9"},
                "priority_queue_policy": {"1": {"max_queue_size": 3}},
            },
        },
        "decoupled": {**served, "model_transaction_policy": {"decoupled": True}},
        "instances": {**served, "instance_group": [{"kind": "KIND_CPU", "count": 2}]},
        "parameters": {**served, "parameters": {"p": {"string_value": "5"}}},
        "parameters as a list": {**served, "parameters": ["p"]},
        "parameters as text": {**served, "parameters": "p"},
        "cached": {**served, "response_cache": {"enable": True}},
        "optional": {"name": "m", "input": [{"name": "a", "data_type": "TYPE_STRING", "dims": [1], "optional": True}]},
        "no name": {"name": "m", "input": [{"data_type": "TYPE_FP32", "dims": [1]}]},
        "no type": {"name": "m", "output": [{"name": "a", "dims": [1]}]},
        "a wrong type": {"name": "m", "input": [{"name": "a", "data_type": "FP32", "dims": [1]}]},
        "an unknown type": {"name": "m", "input": [{"name": "a", "data_type": "TYPE_FP8", "dims": [1]}]},
        "no dimensions": {"name": "m", "input": [{"name": "a", "data_type": "TYPE_FP32"}]},
        "nothing": {},
    }
    for name, one in read.items():
        fact(f"parser: {name}", lambda d=one: ModelConfigParser.from_dict(d))


def small_things():
    fact("warmup: zeroes", lambda: generate_warmup_data(WarmupInput(np.int8, (2,), zero_data=True), 3))
    for kind in ("bool_", "int8", "uint16", "int64", "float16", "bytes_"):
        fact(f"warmup: {kind}", lambda k=kind: kind_of(WarmupInput(getattr(np, k), (2, 3), random_data=True)))
    fact("warmup: none", lambda: generate_warmup_data(WarmupInput(np.int8, (2,)), 3))
    fact("tensor: dtype", lambda: Tensor(name="a", shape=(1,), dtype=np.zeros(1, np.int16).dtype))
    fact("tensor", lambda: Tensor((1,), np.float32))
    fact("model config", ModelConfig)
    fact("request", lambda: Request(data={"a": 1}, parameters={"p": 1}))
    fact("request: views", lambda: mapped(Request(data={"a": 1, "b": 2})))
    fact("response: views", lambda: mapped(Response(data={"a": 1, "b": 2})))


def kind_of(warmup):
    """Type and shape of random data; strings are of any length."""
    data = generate_warmup_data(warmup, 3)
    return [data.dtype.kind, list(data.shape)]


def mapped(arrays):
    """What one can do with arrays by name."""
    arrays["c"] = 3
    del arrays["a"]
    return [list(arrays), len(arrays), list(arrays.items()), list(arrays.keys()), list(arrays.values()), arrays["b"]]


for part in (configurations, parsed, small_things):
    part()
print_facts()

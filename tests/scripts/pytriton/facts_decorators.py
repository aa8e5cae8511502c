"""Prints what PyTriton's decorators, and the checks of their outputs, return and raise, as JSON.

The script imports `pytriton` alone. Run by an interpreter that has PyTriton, it prints the facts that
`tests/vectors/pytriton` keeps; run by `python -m alipes.compat pytriton`, what alipes makes of the same calls.
"""

from __future__ import annotations

import numpy as np
from noting import fact, print_facts
from pytriton.decorators import (
    ConstantPadder,
    TritonContext,
    batch,
    convert_output,
    fill_optionals,
    first_value,
    group_by_keys,
    group_by_values,
    pad_batch,
    sample,
    triton_context,
)
from pytriton.model_config import DynamicBatcher
from pytriton.model_config.triton_model_config import TensorSpec, TritonModelConfig
from pytriton.proxy.types import Request
from pytriton.proxy.validators import TritonResultsValidator


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


def bound(function, model=None):
    """A function, bound as `Triton.bind` does it."""
    context = TritonContext()
    context.model_configs[function] = model or config()
    getattr(function, "__self__", function).__triton_context__ = context
    return function


def rows(*values, dtype=np.float32):
    """An array of these rows."""
    return np.array(values, dtype)


def requests(*inputs):
    """Requests with these inputs."""
    return [Request(data=one) for one in inputs]


TWO = [{"a": rows([1, 2]), "b": rows([3, 4])}, {"a": rows([5, 6], [7, 8]), "b": rows([9, 10], [11, 12])}]


def two():
    """Two requests, of one row and of two."""
    return requests(*({name: value.copy() for name, value in one.items()} for one in TWO))


def add_sub(**inputs):
    """Sum and difference, in the order of the declaration."""
    return inputs["a"] + inputs["b"], inputs["a"] - inputs["b"]


class Model:
    """Methods that are bound: the object has the context."""

    @batch
    def infer(self, **inputs):
        """Sum and difference."""
        return list(add_sub(**inputs))

    @batch
    def __call__(self, **inputs):
        """Sum and difference."""
        return {"x": inputs["a"] + inputs["b"]}


def batches():
    fact("batch: dictionary", lambda: bound(batch(lambda **i: {"x": i["a"] * 2}))(two()))
    fact("batch: tuple", lambda: bound(batch(add_sub))(two()))
    fact("batch: other inputs", lambda: batch(add_sub)(requests(TWO[0], {"a": rows([1, 2])})))
    fact("batch: too few rows", lambda: bound(batch(lambda **i: {"x": i["a"][:1], "z": i["a"]}))(two()))
    fact("batch: too few outputs", lambda: bound(batch(lambda **i: [i["a"]]))(two()))
    fact("batch: not bound", lambda: batch(add_sub)(two()))
    fact("batch: strange output", lambda: bound(batch(lambda **i: 5))(two()))
    fact("batch: raises", lambda: bound(batch(lambda **i: i["q"]))(two()))
    fact("batch: a method", lambda: bound(Model().infer)(two()))
    fact("batch: __call__", lambda: bound(Model().__call__)(two()))

    @batch
    def stream(**inputs):
        for times in (1, 2):
            yield {"x": inputs["a"] * times}

    fact("batch: a generator", lambda: list(stream(two())))
    fact("batch: kwargs", lambda: batch(lambda **i: {"x": i["a"] + i["k"]})(two(), k=np.float32(1)))

    fact("sample: dictionary", lambda: bound(sample(lambda a, b: {"x": a - b}))(two()))
    fact("sample: list", lambda: bound(sample(lambda a, b: [a, b]))(two()))
    fact("sample: not bound", lambda: sample(lambda a, b: [a, b])(two()))
    fact("convert: dictionary", lambda: convert_output({"x": 1}))
    fact("convert: list", lambda: convert_output([1, 2], model_config=config()))
    fact("convert: too long", lambda: convert_output([1, 2, 3], model_config=config()))
    fact("convert: text", lambda: convert_output("x", model_config=config()))


def key_groups():
    seen = []

    def count(wanted):
        seen.append([sorted(one.keys()) for one in wanted])
        return [{"n": np.array([len(wanted)])} for _ in wanted]

    mixed = [{"a": rows([1])}, {"b": rows([1])}, {"a": rows([2])}, {"a": rows([1]), "b": rows([2])}]
    fact("group_by_keys", lambda: group_by_keys(count)(requests(*mixed)))
    fact("group_by_keys: calls", lambda: seen)
    fact("group_by_keys: none", lambda: group_by_keys(count)([]))


def value_groups():
    calls = []

    def noted(**inputs):
        calls.append({name: value.tolist() for name, value in inputs.items()})
        return {"x": inputs["v"] * 10}

    by = group_by_values("k")
    keys = rows([2], [1], [2], [1], dtype=np.int32)
    fact("group_by_values", lambda: by(noted)(k=keys, v=rows([1], [2], [3], [4])))
    fact("group_by_values: calls", lambda: calls)
    texts = np.array([[b"b"], [b"a"], [b"b"]], np.object_)
    fact("group_by_values: bytes", lambda: by(noted)(k=texts, v=rows([1], [2], [3])))
    fact("group_by_values: S", lambda: by(noted)(k=texts.astype("S4"), v=rows([1], [2], [3])))
    fact("group_by_values: two", lambda: group_by_values("k", "v")(noted)(k=keys, v=rows([1], [2], [1], [3])))
    fact("group_by_values: beneath", lambda: by(batch(noted))(k=keys, v=rows([1], [2], [3], [4])))
    fact("group_by_values: no such key", lambda: by(noted)(v=rows([1])))

    def wide(k, v):
        return {"x": np.ones((len(v), int(k[0, 0])), np.float32)}

    padded = group_by_values("k", pad_fn=ConstantPadder(-1))
    fact("group_by_values: padded", lambda: padded(wide)(k=keys, v=rows([1], [2], [3], [4])))
    fact("group_by_values: not padded", lambda: by(wide)(k=keys, v=rows([1], [2], [3], [4])))
    fact(
        "group_by_values: batch",
        lambda: bound(batch(by(lambda k, v: {"x": v + 1})))(
            requests({"k": keys[:1], "v": rows([1])}, {"k": keys[1:3], "v": rows([2], [3])})
        ),
    )


def optionals():
    fill = fill_optionals(c=np.array([7], np.int32))
    model = config()
    fact("fill_optionals", lambda: bound(fill(lambda wanted: [dict(one.items()) for one in wanted]), model)(two()))
    fact(
        "fill_optionals: there",
        lambda: bound(fill(lambda wanted: [dict(one.items()) for one in wanted]), model)(
            requests({"c": np.array([[1, 2]], np.int32)})
        ),
    )
    flat = config(batching=False)
    fact("fill_optionals: no batches", lambda: bound(fill(lambda wanted: [one["c"] for one in wanted]), flat)(two()))
    for name, defaults in {
        "unknown": {"q": np.zeros(1), "p": np.zeros(1)},
        "no array": {"c": 5},
        "type": {"c": np.zeros(1)},
        "shape": {"a": np.zeros(3, np.float32)},
        "rank": {"c": np.zeros((1, 1), np.int32)},
    }.items():
        fact(f"fill_optionals: {name}", lambda d=defaults: bound(fill_optionals(**d)(lambda wanted: wanted))(two()))
    fact("fill_optionals: not bound", lambda: fill(lambda wanted: wanted)(two()))


def contexts():
    fact("triton_context", lambda: type(bound(triton_context(lambda triton_context: triton_context))()).__name__)
    fact("triton_context: not bound", triton_context(lambda **k: k))
    fact("triton_context: config", context_config)

    for name, batcher in {
        "largest": None,
        "preferred": DynamicBatcher(preferred_batch_size=[8, 2, 4]),
        "exact": DynamicBatcher(preferred_batch_size=[3]),
    }.items():
        model = config(batcher=batcher)
        fact(
            f"pad_batch: {name}",
            lambda m=model: bound(pad_batch(lambda a, b: {"a": a, "b": b}), m)(
                a=rows([1], [2], [3]), b=rows([4], [5], [6])
            ),
        )
    fact("pad_batch: too many", lambda: bound(pad_batch(lambda a: a), config(max_batch_size=2))(a=rows([1], [2], [3])))


def first_values():
    def first(*keys, **options):
        return bound(first_value(*keys, **options)(lambda *wanted, **inputs: wanted or inputs), config())

    fact("first_value", lambda: first("c")(a=rows([1], [2]), c=rows([3], [3])))
    fact("first_value: not squeezed", lambda: first("c", squeeze_single_values=False)(c=rows([3], [3])))
    fact("first_value: differs", lambda: first("c")(c=rows([3], [4])))
    fact("first_value: may differ", lambda: first("c", strict=False)(c=rows([3], [4])))
    fact("first_value: wide", lambda: first("c")(c=rows([3, 4], [3, 4])))
    fact("first_value: bytes", lambda: first("c")(c=np.array([[b"u"], [b"u"]], np.object_)))
    fact("first_value: bytes differ", lambda: first("c")(c=np.array([[b"u"], [b"v"]], np.object_)))
    fact("first_value: absent", lambda: first("q")(c=rows([3])))
    fact("first_value: requests", lambda: [dict(one.items()) for one in first("c")(requests({"c": rows([3], [3])}))[0]])
    fact("first_value: reserved", lambda: first_value("__triton_context__", "c"))
    fact("first_value: no batches", lambda: bound(first_value("c")(lambda **i: i), config(batching=False))(c=rows([1])))


def context_config():
    @batch
    @triton_context
    def infer(**inputs):
        model = inputs["triton_context"].model_configs[infer]
        return {"x": inputs["a"] + len(model.inputs)}

    return bound(infer)(two())


def padder():
    pad = ConstantPadder(9)
    fact("padder", lambda: pad([{"x": rows([1, 2])}, {"x": rows([1, 2, 3]), "y": rows([1])}]))
    fact("padder: S", lambda: pad([{"x": np.array([[b"a"]])}, {"x": np.array([[b"bcd", b"e"]])}]))
    fact("padder: U", lambda: pad([{"x": np.array([["a"]])}, {"x": np.array([["bcd", "e"]])}]))
    fact("padder: objects", lambda: pad([{"x": np.array([[b"a"]], object)}, {"x": np.array([[b"b", b"c"]], object)}]))
    fact("padder: kinds", lambda: pad([{"x": rows([1])}, {"x": rows([1], dtype=np.int32)}]))
    fact("padder: types", lambda: pad([{"x": rows([1])}, {"x": rows([1], dtype=np.float64)}]))
    fact("padder: two dimensions", lambda: pad([{"x": np.ones((1, 2, 1))}, {"x": np.ones((2, 1, 2))}]))


def validator():
    def check(responses, strict=True, number=1, **changes):
        TritonResultsValidator(config(**changes), strict).validate_responses([None] * number, responses)

    good = {"x": rows([1, 2])}
    for name, responses in {
        "good": [good],
        "a tuple": (good,),
        "none": None,
        "two": [good, good],
        "no dictionary": [5],
        "a key": [{5: rows([1, 2])}],
        "complex": [{"x": np.zeros((1, 2), complex)}],
        "text objects": [{"x": np.array([["a"]], object)}],
        "other objects": [{"x": np.array([[5]], object)}],
        "unknown": [{"q": rows([1, 2])}],
        "type": [{"x": rows([1, 2], dtype=np.float64)}],
        "bytes": [{"x": np.array([[b"a", b"b"]])}],
        "rank": [{"x": rows([[1, 2]])}],
        "shape": [{"x": rows([1, 2, 3])}],
    }.items():
        fact(f"validator: {name}", lambda r=responses: check(r))
        fact(f"validator, not strict: {name}", lambda r=responses: check(r, strict=False))
    fact("validator: no batches", lambda: check([{"x": np.ones(2, np.float32)}], batching=False))


for part in (batches, key_groups, value_groups, optionals, contexts, first_values, padder, validator):
    part()
print_facts()

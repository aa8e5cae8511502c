"""Random small ONNX graphs: some work on each row by itself, some do not, and nothing in their shapes says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["RandomGraph", "random_graph"]

WIDTH = 4
"""Numbers in a row, for every tensor between input and output."""

_OPSET, _IR_VERSION = 17, 8


@dataclass(frozen=True)
class RandomGraph:
    """A graph of one input `x` and one output `y`, FP32 `["batch", 4]`.

    Attributes:
        file: The model file.
        steps: The names of its steps, in their order.
        mixes: Whether a step was drawn that has to do with axis 0. Even so its answers may be the rows' own.
    """

    file: bytes
    steps: tuple[str, ...]
    mixes: bool


@dataclass
class _Draft:
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def numbers(self, *shape: int) -> str:
        return self.constant(self.random.normal(size=shape).astype("f4"))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0]


Step = Callable[[_Draft, Sequence[str]], str]
"""Adds nodes that take some of the tensors so far, the newest last, and gives the name of a new one."""


def _unary(kind: str, **attributes: Any) -> Step:
    return lambda draft, known: draft.node(kind, known[-1], **attributes)


def _with_constant(kind: str) -> Step:
    return lambda draft, known: draft.node(kind, known[-1], draft.numbers(WIDTH))


def _linear(draft: _Draft, known: Sequence[str]) -> str:
    return draft.node("MatMul", known[-1], draft.numbers(WIDTH, WIDTH))


def _join(kind: str) -> Step:
    return lambda draft, known: draft.node(kind, known[-1], known[draft.random.integers(len(known))])


def _reduced(kind: str, axis: int, then: str) -> Step:
    def step(draft: _Draft, known: Sequence[str]) -> str:
        return draft.node(then, known[-1], draft.node(kind, known[-1], axes=[axis], keepdims=1))

    return step


def _sorted_row(draft: _Draft, known: Sequence[str]) -> str:
    return draft.node("TopK", known[-1], draft.constant([WIDTH]), outputs=2, axis=1)


def _slice(draft: _Draft, name: str, start: int, end: int, step: int = 1) -> str:
    numbers = [draft.constant(np.array([number], np.int64)) for number in (start, end, 0, step)]
    return draft.node("Slice", name, *numbers)


def _rows_reversed(draft: _Draft, known: Sequence[str]) -> str:
    return _slice(draft, known[-1], -1, -(1 << 40), -1)


def _rows_rolled(draft: _Draft, known: Sequence[str]) -> str:
    parts = [_slice(draft, known[-1], 1, 1 << 40), _slice(draft, known[-1], 0, 1)]
    return draft.node("Concat", *parts, axis=0)


def _first_row_everywhere(draft: _Draft, known: Sequence[str]) -> str:
    return draft.node("Expand", _slice(draft, known[-1], 0, 1), draft.node("Shape", known[-1]))


def _attention_over_rows(draft: _Draft, known: Sequence[str]) -> str:
    scores = draft.node("MatMul", known[-1], draft.node("Transpose", known[-1], perm=[1, 0]))
    return draft.node("MatMul", draft.node("Softmax", scores, axis=1), known[-1])


def _number_of_rows(draft: _Draft, known: Sequence[str]) -> str:
    rows = draft.node("Gather", draft.node("Shape", known[-1]), draft.constant(np.int64(0)))
    return draft.node("Div", known[-1], draft.node("Cast", rows, to=TensorProto.FLOAT))


def _cumulated(draft: _Draft, known: Sequence[str]) -> str:
    return draft.node("CumSum", known[-1], draft.constant(np.int64(0)))


def _largest_of_rows_where_positive(draft: _Draft, known: Sequence[str]) -> str:
    largest = draft.node("ReduceMax", known[-1], axes=[0], keepdims=1)
    positive = draft.node("Greater", known[-1], draft.constant(np.float32(0)))
    return draft.node("Where", positive, largest, known[-1])


def _a_little_of_the_mean(draft: _Draft, known: Sequence[str]) -> str:
    mean = draft.node("ReduceMean", known[-1], axes=[0], keepdims=1)
    return draft.node("Add", known[-1], draft.node("Mul", mean, draft.constant(np.float32(0.01))))


BY_ROW: dict[str, Step] = {
    "relu": _unary("Relu"),
    "tanh": _unary("Tanh"),
    "sigmoid": _unary("Sigmoid"),
    "abs": _unary("Abs"),
    "softmax": _unary("Softmax", axis=1),
    "add": _with_constant("Add"),
    "mul": _with_constant("Mul"),
    "linear": _linear,
    "join": _join("Add"),
    "product": _join("Mul"),
    "largest": _join("Max"),
    "centred": _reduced("ReduceMean", 1, "Sub"),
    "scaled": _reduced("ReduceMax", 1, "Sub"),
    "sorted": _sorted_row,
}

OVER_ROWS: dict[str, Step] = {
    "softmax of rows": _unary("Softmax", axis=0),
    "centred by rows": _reduced("ReduceMean", 0, "Sub"),
    "largest of rows": _reduced("ReduceMax", 0, "Sub"),
    "lengths of columns": _reduced("ReduceL2", 0, "Add"),
    "cumulated": _cumulated,
    "reversed": _rows_reversed,
    "rolled": _rows_rolled,
    "first row": _first_row_everywhere,
    "attention": _attention_over_rows,
    "rows counted": _number_of_rows,
    "largest where positive": _largest_of_rows_where_positive,
    "a little of the mean": _a_little_of_the_mean,
}


def random_graph(number: int) -> RandomGraph:
    """The graph of that number, the same each time: one of two has steps over rows."""
    random = np.random.default_rng(number)
    draft = _Draft(random)
    steps = [str(name) for name in random.choice(list(BY_ROW), random.integers(1, 6))]
    mixes = bool(random.integers(2))
    if mixes:
        steps.insert(int(random.integers(len(steps) + 1)), str(random.choice(list(OVER_ROWS))))
    known = ["x"]
    for name in steps:
        known.append((OVER_ROWS.get(name) or BY_ROW[name])(draft, known))
    draft.nodes.append(helper.make_node("Identity", [known[-1]], ["y"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", WIDTH]) for name in "xy"]
    graph = helper.make_graph(draft.nodes, "random", ports[:1], ports[1:], draft.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    return RandomGraph(model.SerializeToString(), tuple(steps), mixes)

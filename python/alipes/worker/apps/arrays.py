"""A function on arrays, exported without annotations: its model's configuration says what it takes and gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any

import numpy as np

from alipes.datatypes import array_type
from alipes.worker.apps.plan import Argument, Plan
from alipes.worker.apps.tensor_types import TensorType

__all__ = ["named_outputs", "plan_of_arrays"]


def plan_of_arrays(
    function: Callable[..., Any], config: Mapping[str, Any], inputs: Mapping[str, str], why_alone: str
) -> Plan:
    """The plan of a function whose arguments and results are the declared tensors.

    Args:
        function: The function.
        config: The model's configuration.
        inputs: Argument -> the input that it gets.
        why_alone: Why requests are not joined to one call, though the model batches; empty where they are.
    """
    batched = config.get("max_batch_size", 0) > 0
    declared = {tensor["name"]: tensor for tensor in config["input"]}
    defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    arguments = [
        _argument(name, declared[tensor], defaults[name], batched)
        for name, tensor in inputs.items()
        if tensor in declared
    ]
    outputs = {tensor["name"]: _tensor(tensor, batched) for tensor in config["output"]}
    return Plan(
        tuple(arguments),
        request="",
        result=_annotation(config["output"][0]) if len(outputs) == 1 else Any,
        outputs=outputs,
        is_stream=False,
        is_async=False,
        batched=batched,
        any_rows=True,
        why_alone=why_alone,
    )


def named_outputs(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A function whose result has the outputs in their order: one array, several in a tuple, or a dictionary of them.

    Args:
        function: The function. What it gives as a dictionary is known by its keys, if these are the names of the
            outputs, else by its order.
        names: Names of the outputs.
    """
    wanted = set(names)

    @wraps(function)
    def call(**arguments: Any) -> Any:
        found = function(**arguments)
        if isinstance(found, Mapping):
            if found.keys() != wanted:
                found = dict(zip(names, found.values(), strict=True))
            return {name: np.asarray(value) for name, value in found.items()}
        values = found if isinstance(found, list | tuple) else (found,)
        if len(values) != len(names):
            raise ValueError(f"the function returned {len(values)} arrays, and the model has {len(names)} outputs")
        arrays = tuple([np.asarray(value) for value in values])
        return arrays[0] if len(arrays) == 1 else arrays

    return call


def _argument(name: str, tensor: Mapping[str, Any], default: Any, batched: bool) -> Argument:
    optional = bool(tensor.get("optional")) and default is not inspect.Parameter.empty
    return Argument(
        name,
        _annotation(tensor),
        required=not optional,
        default=inspect.Parameter.empty,  # stays the function's own
        tensor=_tensor(tensor, batched),
        stacks=True,
        input=tensor["name"],
    )


def _tensor(tensor: Mapping[str, Any], batched: bool) -> TensorType:
    return TensorType(_datatype(tensor), tuple(int(size) for size in tensor["dims"]), "array")


def _annotation(tensor: Mapping[str, Any]) -> Any:
    """What a document has of a tensor: one row, where the model batches."""
    sizes = tensor["reshape"].get("shape", ()) if tensor.get("reshape") is not None else tensor["dims"]
    shape = tuple(None if int(size) < 0 else int(size) for size in sizes)
    return Annotated[np.ndarray, array_type(_datatype(tensor)), shape]


def _datatype(tensor: Mapping[str, Any]) -> str:
    datatype = str(tensor["data_type"]).removeprefix("TYPE_")
    return "BYTES" if datatype == "STRING" else datatype

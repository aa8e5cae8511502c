"""The tensors that a model is called with and answers, as its configuration names them.

Beside the inputs and outputs that callers see, these are the controls and states of sequences: the server fills in the
former, and keeps the latter from one request of a sequence to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["further_inputs", "further_outputs", "input_names", "output_types"]

_TRUTHS: Final = {"int32_false_true": "TYPE_INT32", "fp32_false_true": "TYPE_FP32", "bool_false_true": "TYPE_BOOL"}
"""The datatype of a control by the field that has its values for false and true."""


def input_names(config: Mapping[str, Any]) -> list[str]:
    """Names of all inputs: those of callers, then controls, then states."""
    names = [tensor["name"] for tensor in config.get("input", ())]
    return list(dict.fromkeys([*names, *(tensor["name"] for tensor in further_inputs(config))]))


def further_inputs(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs that the server fills in, with `name`, `data_type` and `dims`: controls, then states."""
    sequences = config.get("sequence_batching", {})
    controls = [
        {"name": control["name"], "data_type": _control_type(kind), "dims": [1]}
        for control in sequences.get("control_input", ())
        for kind in control.get("control", ())[:1]
    ]
    states = [
        {"name": state["input_name"], "data_type": state["data_type"], "dims": state.get("dims", [])}
        for state in sequences.get("state", ())
    ]
    return [*controls, *states]


def further_outputs(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Outputs that renew states, with `name`, `data_type` and `dims`."""
    return [
        {"name": state["output_name"], "data_type": state["data_type"], "dims": state.get("dims", [])}
        for state in config.get("sequence_batching", {}).get("state", ())
    ]


def _control_type(control: Mapping[str, Any]) -> str:
    return next((kind for field, kind in _TRUTHS.items() if control.get(field)), str(control.get("data_type", "")))


def output_types(config: Mapping[str, Any]) -> dict[str, str]:
    """The datatype of each output, such as `TYPE_FP32`: those of callers, then states that only the server sees."""
    found = {tensor["name"]: tensor["data_type"] for tensor in config.get("output", ())}
    for tensor in further_outputs(config):
        found.setdefault(tensor["name"], tensor["data_type"])
    return found

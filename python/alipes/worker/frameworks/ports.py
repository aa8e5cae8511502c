"""The tensors that a model is called with and answers, as its configuration names them.

Beside the inputs and outputs that callers see, these are the controls and states of sequences: the server fills in the
former, and keeps the latter from one request of a sequence to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["input_names", "output_types"]


def input_names(config: Mapping[str, Any]) -> list[str]:
    """Names of all inputs: those of callers, then controls, then states."""
    sequences = config.get("sequence_batching", {})
    names = [tensor["name"] for tensor in (*config.get("input", ()), *sequences.get("control_input", ()))]
    return list(dict.fromkeys([*names, *(state["input_name"] for state in sequences.get("state", ()))]))


def output_types(config: Mapping[str, Any]) -> dict[str, str]:
    """The datatype of each output, such as `TYPE_FP32`: those of callers, then states that only the server sees."""
    found = {tensor["name"]: tensor["data_type"] for tensor in config.get("output", ())}
    for state in config.get("sequence_batching", {}).get("state", ()):
        found.setdefault(state["output_name"], state["data_type"])
    return found

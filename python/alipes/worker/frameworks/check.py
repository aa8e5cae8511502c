"""Holds a model's configuration against the signature of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.ports import further_inputs, further_outputs, input_names
from alipes.worker.loading import LoadError

__all__ = ["check_ports", "v2_name"]


def v2_name(data_type: str) -> str:
    """The datatype's V2 name: `FP32` for `TYPE_FP32`, `BYTES` for `TYPE_STRING`."""
    return "BYTES" if data_type == "TYPE_STRING" else data_type.removeprefix("TYPE_")


def check_ports(model_name: str, config: Mapping[str, Any], signature: Signature) -> None:
    """Checks that the configuration names inputs and outputs that the file has, with datatypes and shapes that fit.

    Outputs of the file that the configuration does not name are not answered.

    Raises:
        LoadError: With the first thing that differs.
    """
    batches = config.get("max_batch_size", 0) > 0
    for side, ports in (("input", signature.inputs), ("output", signature.outputs)):
        by_name = {port.name: port for port in ports}
        further = further_inputs(config) if side == "input" else further_outputs(config)
        for tensor in (*config.get(side, ()), *further):
            port = by_name.get(tensor["name"])
            if port is None:
                known = ", ".join(sorted(by_name)) or "none"
                raise LoadError(
                    f"model '{model_name}': the configuration has {side} '{tensor['name']}', the file's {side}s are: "
                    f"{known}"
                )
            _check_tensor(f"model '{model_name}', {side} '{port.name}'", tensor, port, batches)
    named = input_names(config)
    missing = [port.name for port in signature.inputs if port.name not in named]
    if missing:
        raise LoadError(f"model '{model_name}': the file has input '{missing[0]}', which the configuration lacks")


def _check_tensor(called: str, tensor: Mapping[str, Any], port: Port, batches: bool) -> None:
    datatype = v2_name(tensor.get("data_type", ""))
    if datatype != port.datatype:
        raise LoadError(f"{called}: the configuration has datatype {datatype}, the file {port.datatype}")
    dims = [int(size) for size in tensor.get("reshape", {}).get("shape", tensor.get("dims", ()))]
    shape = [ANY, *dims] if batches else dims
    if not _fits(shape, port.shape):
        raise LoadError(f"{called}: the configuration has shape {shape}, the file {list(port.shape)}")


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a configured shape is one of the file's; a size that either leaves open fits any."""
    if not wanted:
        return all(size == 1 for size in shape)
    return len(shape) == len(wanted) and all(
        ANY in pair or pair[0] == pair[1] for pair in zip(shape, wanted, strict=True)
    )

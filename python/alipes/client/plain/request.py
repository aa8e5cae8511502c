"""An inference request with checked inputs, and its response; tensors in shared memory stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client.arguments import request_error
from alipes.client.plain.options import Options
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import InferStep
from alipes.client.region_tensor import RegionTensor
from alipes.client.signature import Signature, TensorSpec, Value
from alipes.config.named import Named
from alipes.errors import InvalidArgument, TransportError

__all__ = ["Answer", "Array", "Inputs", "Outputs", "PreparedRequest", "check_tensors", "named_outputs"]

Array: TypeAlias = npt.NDArray[Any]
Inputs: TypeAlias = Mapping[str, Value] | Value
Outputs: TypeAlias = Sequence[str] | Mapping[str, Array | RegionTensor | None]

_Target: TypeAlias = Callable[[str, tuple[int, ...]], Any]
"""Reads an output that lies in a region, by its datatype and shape."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a server.

    Attributes:
        outputs: Arrays by name; read-only where they are not in shared memory. An output that was asked for by a
            `RegionTensor` is one, with the shape that it has become.
        version: The version of the model.
        request_id: The request's id.
        parameters: Response parameters that the model attached.
    """

    outputs: dict[str, Array]
    version: str
    request_id: str
    parameters: dict[str, bool | int | float | str]

    def __getitem__(self, name: str) -> Array:
        """The output of that name."""
        return self.outputs[name]


class PreparedRequest:
    """An inference request whose inputs fit the model; it may be sent more than once.

    Attributes:
        single: Whether the caller passed an array alone, so that a single output is returned alone, too.
        model: The model's name.
        request_id: The request's id.
    """

    def __init__(
        self,
        signature: Signature,
        inputs: Inputs,
        outputs: Outputs | None,
        options: Options,
        regions: Iterable[SharedMemory],
    ) -> None:
        """Checks the inputs.

        Raises:
            InvalidArgument: If they do not fit the model.
        """
        tensors: list[tuple[Any, ...]] = list(signature.tensors(inputs))
        self.single = not isinstance(inputs, Mapping)
        self.model, self.request_id, self._options = signature.model, options.request_id, options
        self._targets: dict[str, _Target] = {}
        if regions:
            tensors = [_placed(tensor, regions) for tensor in tensors]
        self._arguments = (
            signature.model,
            options.version,
            tensors,
            None if outputs is None else self._wanted(signature, outputs, regions),
            options.request_id,
            options.as_parameters(),
        )

    def step(self, timeout_s: float | None) -> InferStep:
        """One attempt, within the time that is left."""
        headers = self._options.headers
        return InferStep((*self._arguments, timeout_s, headers) if headers else (*self._arguments, timeout_s))

    def on_stream(self) -> dict[str, Any]:
        """The arguments of `_core.ClientStream.send`; the server marks the last response."""
        model, version, tensors, wanted, request_id, _ = self._arguments
        options = self._options
        return {
            "model": model,
            "version": version,
            "inputs": tensors,
            "outputs": wanted,
            "request_id": request_id,
            "sequence_id": options.sequence_id,
            "sequence_start": options.sequence_start,
            "sequence_end": options.sequence_end,
            "timeout_us": options.queue_timeout_us,
            "priority": options.priority,
            "parameters": {**(options.parameters or {}), "triton_enable_empty_final_response": True},
        }

    def result(self, outputs: dict[str, Array]) -> dict[str, Array] | Array:
        """What the caller gets: all outputs by name, or the only one where an array was passed alone."""
        if self.single and len(outputs) == 1:
            return next(iter(outputs.values()))
        return named_outputs(self.model, outputs)

    def answer(self, response: tuple[dict[str, Any], str, str, dict[str, Any]]) -> Answer:
        """Reads a response; outputs in shared memory become arrays over it."""
        outputs, version, request_id, parameters = response
        for name, read in self._targets.items():
            if isinstance(output := outputs.get(name), tuple):
                outputs[name] = read(*output)
        for name, output in outputs.items():
            if isinstance(output, tuple):
                raise TransportError(f"the server's response cannot be read: output '{name}' has no elements")
        return Answer(named_outputs(self._arguments[0], outputs), version, request_id, parameters)

    def _wanted(
        self, signature: Signature, outputs: Outputs, regions: Iterable[SharedMemory]
    ) -> list[str | tuple[str, dict[str, Any]]]:
        wanted: list[str | tuple[str, dict[str, Any]]] = []
        for name in outputs:
            if signature.outputs and name not in signature.outputs:
                names = ", ".join(f"'{known}'" for known in signature.outputs)
                raise InvalidArgument(
                    f"model '{signature.model}' has no output '{name}': its outputs are {names}", model=signature.model
                )
            target = outputs[name] if isinstance(outputs, Mapping) else None
            if target is None:
                wanted.append(name)
                continue
            if isinstance(target, RegionTensor):
                spec = signature.outputs[name]
                wanted.append((name, target.place(signature.model, spec)))
                self._targets[name] = partial(_in_region, target, spec)
                continue
            region, place = _find(target, regions)
            if region is None or place is None or not target.flags.c_contiguous:
                raise InvalidArgument(
                    f"the array for output '{name}' must lie in memory that this client shares, row by row: make it "
                    "with SharedMemory.empty",
                    model=signature.model,
                )
            self._targets[name] = partial(_view, region, place["shared_memory_offset"])
            wanted.append((name, place))
        return wanted


def check_tensors(inputs: Any, outputs: Any) -> None:
    """Checks what a caller passes for inputs and outputs, before the model's signature is known.

    Raises:
        InvalidArgument: If it is of another type.
    """
    if inputs is None:
        raise request_error("inputs", "an array, or a dictionary of arrays by input", inputs)
    if isinstance(inputs, Mapping):
        for name in inputs:
            if not isinstance(name, str):
                raise request_error("inputs", "names of inputs as text", name)
    if isinstance(outputs, str):
        raise request_error("outputs", f"a list of names: ['{outputs}']", outputs)
    if outputs is None:
        return
    if not isinstance(outputs, Collection):
        raise request_error("outputs", "a list of names", outputs)
    for name in outputs:
        if not isinstance(name, str):
            raise request_error("outputs", "names of outputs as text", name)


def named_outputs(model: str, outputs: dict[str, Array]) -> dict[str, Array]:
    """Outputs that say which there are where another is asked for."""
    return Named(outputs, f"the answer of model '{model}'", "output")


def _view(region: SharedMemory, offset: int, datatype: str, shape: tuple[int, ...]) -> Array:
    return region.view(offset, shape, _dtype(datatype))


def _in_region(target: RegionTensor, spec: TensorSpec, _: str, shape: tuple[int, ...]) -> RegionTensor:
    return target.with_output(spec, shape)


def _placed(tensor: tuple[Any, ...], regions: Iterable[SharedMemory]) -> tuple[Any, ...]:
    name, datatype, shape, array, *place_of_caller = tensor
    if place_of_caller:
        return tensor
    _, place = _find(array, regions) if datatype != "BYTES" else (None, None)
    return tensor if place is None else (name, datatype, shape, None, place)


def _find(array: Array, regions: Iterable[SharedMemory]) -> tuple[SharedMemory | None, dict[str, Any] | None]:
    for region in regions:
        if (place := region.place(array)) is not None:
            return region, place
    return None, None


def _dtype(datatype: str) -> np.dtype[Any]:
    from alipes.client.signature import TensorSpec

    return np.dtype(np.uint16) if datatype == "BF16" else TensorSpec("", datatype, ()).dtype

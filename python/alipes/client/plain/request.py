"""An inference request with checked inputs, and its response; tensors in shared memory stay where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client.plain.shared import SharedMemory
from alipes.client.signature import Signature
from alipes.config.named import Named
from alipes.errors import InvalidArgument, TransportError

__all__ = ["Answer", "Array", "Inputs", "Options", "Outputs", "PreparedRequest", "named_outputs"]

Array: TypeAlias = npt.NDArray[Any]
Inputs: TypeAlias = Mapping[str, npt.ArrayLike] | npt.ArrayLike
Outputs: TypeAlias = Sequence[str] | Mapping[str, Array | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a server.

    Attributes:
        outputs: Arrays by name; read-only where they are not in shared memory.
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


@dataclass(frozen=True, slots=True)
class Options:
    """The fields of a request beside its tensors.

    Attributes:
        version: The version; empty leaves the choice to the server.
        request_id: Repeated in the response, and in errors.
        sequence_id: The sequence that the request belongs to.
        sequence_start: Whether this request starts the sequence.
        sequence_end: Whether this request ends the sequence.
        priority: 1 is highest, 0 is the model's default.
        queue_timeout_s: The longest wait in the model's queue.
        parameters: The model's own parameters.
    """

    version: str = ""
    request_id: str = ""
    sequence_id: int | str | None = None
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    queue_timeout_s: float | None = None
    parameters: Mapping[str, bool | int | float | str] | None = None

    def as_parameters(self) -> dict[str, bool | int | float | str] | None:
        """All fields as parameters of the protocol; `None` where there are none."""
        fields: dict[str, bool | int | float | str] = {}
        if self.sequence_id:
            fields["sequence_id"] = self.sequence_id
            fields["sequence_start"] = self.sequence_start
            fields["sequence_end"] = self.sequence_end
        if self.priority:
            fields["priority"] = self.priority
        if self.queue_timeout_s is not None:
            fields["timeout"] = max(round(self.queue_timeout_s * 1e6), 1)
        if self.parameters:
            fields |= self.parameters
        return fields or None


class PreparedRequest:
    """An inference request whose inputs fit the model; it may be sent more than once."""

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
        self._targets: dict[str, tuple[SharedMemory, int]] = {}
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

    def arguments(self, timeout_s: float | None) -> tuple[Any, ...]:
        """The arguments of `_core.ClientLink.infer`."""
        return (*self._arguments, timeout_s)

    def answer(self, response: tuple[dict[str, Any], str, str, dict[str, Any]]) -> Answer:
        """Reads a response; outputs in shared memory become arrays over it."""
        outputs, version, request_id, parameters = response
        for name, (region, offset) in self._targets.items():
            if isinstance(output := outputs.get(name), tuple):
                datatype, shape = output
                outputs[name] = region.view(offset, shape, _dtype(datatype))
        for name, output in outputs.items():
            if isinstance(output, tuple):
                raise TransportError(f"the server's response cannot be read: output '{name}' has no elements")
        return Answer(named_outputs(self._arguments[0], outputs), version, request_id, parameters)

    def _wanted(
        self, signature: Signature, outputs: Outputs, regions: Iterable[SharedMemory]
    ) -> list[str | tuple[str, dict[str, Any]]]:
        wanted: list[str | tuple[str, dict[str, Any]]] = []
        for name in outputs:
            if name not in signature.outputs:
                names = ", ".join(f"'{known}'" for known in signature.outputs)
                raise InvalidArgument(
                    f"model '{signature.model}' has no output '{name}': its outputs are {names}", model=signature.model
                )
            target = outputs[name] if isinstance(outputs, Mapping) else None
            if target is None:
                wanted.append(name)
                continue
            region, place = _find(target, regions)
            if region is None or place is None or not target.flags.c_contiguous:
                raise InvalidArgument(
                    f"the array for output '{name}' must lie in memory that this client shares, row by row: make it "
                    "with SharedMemory.empty",
                    model=signature.model,
                )
            self._targets[name] = (region, place["shared_memory_offset"])
            wanted.append((name, place))
        return wanted


def named_outputs(model: str, outputs: dict[str, Array]) -> dict[str, Array]:
    """Outputs that say which there are where another is asked for."""
    return Named(outputs, f"the answer of model '{model}'", "output")


def _placed(tensor: tuple[Any, ...], regions: Iterable[SharedMemory]) -> tuple[Any, ...]:
    name, datatype, shape, array = tensor
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

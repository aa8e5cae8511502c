"""A model's inputs and outputs, read from its metadata; arrays are checked against them before the send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client.function import Function, read_function
from alipes.client.region_tensor import RegionTensor
from alipes.datatypes import array_type, datatype_of
from alipes.errors import InvalidArgument
from alipes.fitting import as_type

__all__ = ["Document", "Signature", "TensorSpec", "Value", "read_signature"]

Value: TypeAlias = npt.ArrayLike | RegionTensor
"""What a caller passes for an input."""

Document: TypeAlias = Mapping[str, Any]
"""A configuration or metadata, as JSON has it."""

_CONVERTED: Final = frozenset({"BF16", "BYTES"})
_TEXT_KINDS: Final = "OSU"
_EXACT: Final = 2.0**53
"""Whole numbers below are exact as doubles."""
_MAX_KNOWN_SHAPES: Final = 64
"""Shapes that an input remembers as fitting: callers use a few, and one that uses many is checked each time."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor as the model declares it.

    Attributes:
        name: Its name.
        datatype: Its datatype in the protocol's words, such as `FP32`.
        shape: Its sizes; -1 is any.
        open_batch: Whether the server leaves the first size open although `shape` has a number there.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    open_batch: bool = field(default=False, repr=False)
    _fitting: set[tuple[int, ...]] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def read(cls, document: Document) -> Self:
        """A tensor of a model's metadata."""
        shape = tuple(int(size) for size in document.get("shape", ()))
        return cls(str(document["name"]), str(document["datatype"]), shape)

    def sized(self, batch_size: int) -> Self:
        """The tensor with a number in place of each size that the server leaves open."""
        shape = tuple(size if size > 0 else batch_size for size in self.shape)
        return replace(self, shape=shape, open_batch=bool(shape) and self.shape[0] <= 0, _fitting=set())

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return array_type(self.datatype)  # BF16 is sent as the upper halves of its elements

    @property
    def element_bytes(self) -> int | None:
        """Bytes of an element as it is sent; none where they differ."""
        return None if self.datatype == "BYTES" else 2 if self.datatype == "BF16" else self.dtype.itemsize

    def placed(self, model: str, value: RegionTensor) -> tuple[str, str, tuple[int, ...], None, dict[str, Any]]:
        """An input that lies in a region, as the data plane takes it.

        Raises:
            InvalidArgument: If it is not of the declared shape, or nobody knows how many bytes it has.
        """
        if value.shape is None:
            raise InvalidArgument(f"the RegionTensor for '{self.name}' of model '{model}' needs its shape", model=model)
        shape = tuple(value.shape)
        self._check_shape(model, shape)
        return self.name, self.datatype, shape, None, value.place(model, self)

    def tensor(self, model: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
        """The value as an array that can be sent: of the right type and shape, row by row.

        Raises:
            InvalidArgument: If it is not of the declared type or shape.
        """
        array = value if isinstance(value, np.ndarray) else self._array(model, value)
        if array.dtype is not self.dtype:
            array = self._typed(model, array)
        if array.shape not in self._fitting:
            self._check_shape(model, array.shape)
        if self.datatype == "BF16":
            return _halved(array)
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def tensor_of(self, model: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
        """The value as an array of the right type, whatever its shape.

        Raises:
            InvalidArgument: If it is not of the declared type.
        """
        return self._typed(model, value) if isinstance(value, np.ndarray) else self._array(model, value)

    def _array(self, model: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
        try:
            if self.dtype.kind == "O":
                return np.asarray(value, self.dtype)
            # A list is read as what it holds first: numpy would cut numbers to the type that is wanted.
            held = np.asarray(value)
            if held.dtype.kind == "f" and self.dtype.kind in "iu":
                held = _whole(value, held)
            return as_type(held, self.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(
                f"input '{self.name}' of model '{model}' takes {self.datatype}: {error}", model=model
            ) from error

    def _typed(self, model: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if array.dtype == self.dtype:
            return array
        if self.datatype == "BYTES" and array.dtype.kind in _TEXT_KINDS:
            return array.astype(np.object_) if array.dtype.kind == "U" else array
        if self.datatype == "BF16" and array.dtype.name == "bfloat16":
            return array.astype(np.float32)
        if array.dtype.newbyteorder("=") == self.dtype:
            return array.astype(self.dtype)
        hint = "" if self.datatype == "BYTES" else f": convert it with .astype(np.{self.dtype.name})"
        raise InvalidArgument(
            f"input '{self.name}' of model '{model}' takes {self.datatype}, the array has {array.dtype.name}{hint}",
            model=model,
        )

    def _check_shape(self, model: str, shape: tuple[int, ...]) -> None:
        declared = self.shape
        if len(shape) != len(declared) or any(
            size not in (-1, seen) for size, seen in zip(declared, shape, strict=True)
        ):
            seen = f"takes the shape {_text(declared)}, the array has {_text(shape)}"
            raise InvalidArgument(f"input '{self.name}' of model '{model}' {seen}", model=model)
        if len(self._fitting) < _MAX_KNOWN_SHAPES:
            self._fitting.add(shape)


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model.

    Attributes:
        model: Its name.
        inputs: By name.
        outputs: By name.
        required: Names of the inputs that cannot be left out, as far as the configuration shows.
        function: The function that the model is, where it is one.
    """

    model: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    required: frozenset[str] = frozenset()
    function: Function | None = None

    @property
    def is_plain(self) -> bool:
        """Whether each call takes all inputs, as arrays whose elements are sent as they are."""
        return len(self.inputs) == max(len(self.required), 1) and all(
            spec.datatype not in _CONVERTED for spec in self.inputs.values()
        )

    def named(self, values: Mapping[str, Value] | Value) -> Mapping[str, Value]:
        """Values by the name of their input; a single one needs none where the model has one input.

        Raises:
            InvalidArgument: If a name is unknown or missing.
        """
        if not self.inputs and isinstance(values, Mapping):
            return values  # the server says nothing of its inputs, as the KServe SDK's does, and checks them itself
        if not isinstance(values, Mapping):
            if len(self.inputs) != 1:
                raise InvalidArgument(
                    f"model '{self.model}' has the inputs {_names(self.inputs)}: pass a dictionary", model=self.model
                )
            return {next(iter(self.inputs)): values}
        if unknown := values.keys() - self.inputs.keys():
            raise InvalidArgument(
                f"model '{self.model}' has no input {_names(unknown)}: its inputs are {_names(self.inputs)}",
                model=self.model,
            )
        if missing := self.required - values.keys():
            raise InvalidArgument(f"model '{self.model}' also takes the input {_names(missing)}", model=self.model)
        return values

    def tensors(self, values: Mapping[str, Value] | Value) -> list[tuple[Any, ...]]:
        """The values as they are sent: name, datatype, shape and array; or, of those in a region, `None` and the place.

        Raises:
            InvalidArgument: If they do not fit.
        """
        inputs, sent = self.inputs, list[tuple[Any, ...]]()
        for name, value in self.named(values).items():
            spec = inputs[name] if inputs else _undeclared(self.model, name, value)
            if isinstance(value, RegionTensor):
                sent.append(spec.placed(self.model, value))
                continue
            array = spec.tensor(self.model, value)
            sent.append((name, spec.datatype, array.shape, array))
        return sent


def read_signature(metadata: Document, config: Document | None) -> Signature:
    """A model's signature; without a configuration no input counts as required."""
    inputs, outputs = (
        {spec.name: spec for spec in map(TensorSpec.read, metadata.get(key, ()))} for key in ("inputs", "outputs")
    )
    declared = config.get("input", ()) if config is not None else ()
    required = frozenset(port["name"] for port in declared if not port.get("optional", False))
    name = str(metadata["name"])
    return Signature(name, inputs, outputs, required & inputs.keys(), read_function(name, config))


def _undeclared(model: str, name: str, value: Value) -> TensorSpec:
    """An input of which the server says nothing, as the array is.

    Raises:
        InvalidArgument: If the protocol has no datatype for the array.
    """
    if isinstance(value, RegionTensor):
        raise InvalidArgument(f"model '{model}' does not say the datatype of '{name}': pass an array", model=model)
    array = np.asarray(value)
    datatype = "BYTES" if array.dtype.kind in _TEXT_KINDS else datatype_of(array.dtype)
    if datatype is None:
        raise InvalidArgument(
            f"input '{name}' of model '{model}': the protocol has no {array.dtype.name}: convert it with .astype",
            model=model,
        )
    return TensorSpec(name, datatype, array.shape)


def _whole(value: npt.ArrayLike, held: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as they are, where numpy reads a list of small and large whole numbers as floats and so rounds them."""
    if (np.abs(held) < _EXACT).all():
        return held
    numbers = np.asarray(value, np.object_)
    return numbers if all(isinstance(number, int | np.integer) for number in numbers.flat) else held


def _halved(array: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """FP32 as BF16: the upper halves, rounded to the nearest, ties to even; what is no number stays none."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(array), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _names(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(map(str, names)))

"""Makes tensors of what a caller gives, or says at once what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client.inference.crop import Crop
from alipes.client.inference.stream_signature import Part, StateInput, StreamSignature
from alipes.client.signature import TensorSpec
from alipes.datatypes import numpy_type
from alipes.errors import InvalidArgument
from alipes.fitting import as_type

__all__ = ["Reader", "Tensor", "Values"]

Tensor: TypeAlias = "tuple[str, str, tuple[int, ...], np.ndarray[Any, Any]]"
"""Name, datatype, shape, and elements that lie row by row."""

Values: TypeAlias = "npt.ArrayLike | Mapping[str, npt.ArrayLike]"
"""What a caller gives: one array, or one by name."""


class Reading(NamedTuple):
    """The tensors of a request, and what of its answer counts where they were padded."""

    tensors: tuple[Tensor, ...]
    crop: Crop | None


class _Usual(NamedTuple):
    """What most requests of a model with one input look like: nothing else has to be looked at."""

    name: str
    datatype: str
    kind: np.dtype[Any]
    shapes: tuple[tuple[int, ...], ...]


class Reader:
    """Reads what callers give for one model."""

    def __init__(self, model: str, signature: StreamSignature, *, cast: bool, pad: bool) -> None:
        """Takes what the model takes.

        Args:
            model: Its name, for messages.
            signature: Its inputs.
            cast: Whether arrays of another type are converted where that loses no kind of number.
            pad: Whether batches and updates that are too short are padded.
        """
        self._model = model
        self._plain = signature.inputs
        self._states = signature.states
        self._cast = cast
        self._pad = pad
        self._usual = _usual(signature)
        self._alone = len(signature.inputs) + signature.streams == 1
        self._names = [spec.name for spec in signature.inputs]
        self._names += [_key(state, part) for state in signature.states for part in state.parts]

    def read(self, x: Values, last: bool) -> Reading:
        """The tensors of one request.

        Args:
            x: One array, where the model takes one, or an array by name.
            last: Whether the sequence ends here, so that its update may be short.

        Raises:
            InvalidArgument: If an array is missing, or of another type or shape than the model takes; a `ValueError`.
        """
        usual = self._usual
        if usual is not None and type(x) is np.ndarray and x.dtype == usual.kind and x.shape in usual.shapes:
            return Reading(((usual.name, usual.datatype, usual.shapes[0], np.ascontiguousarray(x)),), None)
        if not isinstance(x, Mapping):
            return self._read_alone(x, last)
        crops = _Crops()
        tensors = [self._plain_tensor(spec, self._pick(x, (spec.name,), "input"), crops) for spec in self._plain]
        tensors += [self._update(state, self._gather(state, x), last, crops) for state in self._states]
        return Reading(tuple(tensors), crops.found)

    def _read_alone(self, x: object, last: bool) -> Reading:
        if not self._alone:
            wanted = ", ".join(f'"{name}"' for name in self._names)
            raise self._error(f"one array was given, but it takes {len(self._names)}: give a dict with {wanted}")
        crops = _Crops()
        if self._states:
            return Reading((self._update(self._states[0], x, last, crops),), crops.found)
        return Reading((self._plain_tensor(self._plain[0], x, crops),), crops.found)

    def _pick(self, x: Mapping[str, Any], keys: tuple[str, ...], kind: str) -> Any:
        for key in keys:
            if key in x:
                return x[key]
        value = ", ".join(f'"{key}"' for key in x) or "nothing"
        raise self._error(f'Missing {kind} "{keys[0]}": {value} was given')

    def _gather(self, state: StateInput, x: Mapping[str, Any]) -> Any:
        """The update of a state: whole under the input's own name, or its parts one behind the other along axis 1."""
        if state.tensor.name in x:
            return x[state.tensor.name]
        parts = [self._part(state, part, x) for part in state.parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _part(self, state: StateInput, part: Part, x: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """One part; where several models read it, it may be passed under any of their keys."""
        keys = part.keys or (state.tensor.name,)
        array = self._array(state.tensor, self._pick(x, keys, "state"))
        for key in keys:
            if key in x and x[key] is not array and not np.array_equal(x[key], array):
                raise self._error(f'"{keys[0]}" and "{key}" are the same stream, but differ: give one of them')
        shape = (state.tensor.shape[0], part.channels, *state.tensor.shape[2:])
        array = _with_axes(array, len(shape), part.channels)
        if len(state.parts) > 1 and (array.ndim != len(shape) or array.shape[1] != part.channels):
            raise self._error(f'"{keys[0]}": shape {list(array.shape)} does not match {list(shape)}')
        return array

    def _plain_tensor(self, spec: TensorSpec, value: Any, crops: _Crops) -> Tensor:
        array = self._array(spec, value)
        if array.shape != spec.shape:
            array = self._short_batch(spec, array, crops)
        return spec.name, spec.datatype, array.shape, np.ascontiguousarray(array)

    def _short_batch(self, spec: TensorSpec, array: np.ndarray[Any, Any], crops: _Crops) -> np.ndarray[Any, Any]:
        """A batch with fewer rows: as it is where the server leaves their number open, else with rows of zeros."""
        same = array.ndim == len(spec.shape) and array.shape[1:] == spec.shape[1:]
        if not same or not self._pad or not 0 < len(array) < spec.shape[0]:
            raise self._wrong_shape(spec, array)
        if spec.open_batch:
            return array
        crops.note(Crop(len(array), spec.shape[0]))
        return _padded(array, spec.shape)

    def _update(self, state: StateInput, value: Any, last: bool, crops: _Crops) -> Tensor:
        spec = state.tensor
        array = _with_axes(self._array(spec, value), len(spec.shape), spec.shape[1] if len(spec.shape) > 1 else 1)
        if array.shape != spec.shape:
            array = self._short_update(state, array, last, crops)
        return spec.name, spec.datatype, array.shape, np.ascontiguousarray(array)

    def _short_update(
        self, state: StateInput, array: np.ndarray[Any, Any], last: bool, crops: _Crops
    ) -> np.ndarray[Any, Any]:
        """The end of a stream that is no whole update: zeros follow it, and what is made of them does not count."""
        spec = state.tensor
        stride = spec.shape[-1] // state.windows
        same = array.ndim == len(spec.shape) and array.shape[:-1] == spec.shape[:-1]
        if not same or not self._pad or not 0 < array.shape[-1] < spec.shape[-1]:
            raise self._wrong_shape(spec, array)
        if not last:
            raise self._error(
                f'"{spec.name}": an update of {array.shape[-1]} of {spec.shape[-1]} samples can only be the last one '
                "of its sequence: what pads it would stay in the state. Give sequence_end=True"
            )
        if array.shape[-1] % stride:
            raise self._error(f'"{spec.name}": {array.shape[-1]} samples are no multiple of the stride of {stride}')
        crops.note(Crop(array.shape[-1] // stride, state.windows, update=True))
        return _padded(array, spec.shape)

    def _array(self, spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
        if not isinstance(value, np.ndarray):
            raise self._error(f'"{spec.name}": expected a numpy array, got {type(value).__name__}')
        expected = numpy_type(spec.datatype)
        if expected is None or value.dtype == expected:
            return value
        if self._cast and np.can_cast(value.dtype, expected, "same_kind"):
            try:
                return as_type(value, expected)
            except OverflowError as error:
                raise self._error(f'"{spec.name}": {error}') from error
        raise self._error(
            f'"{spec.name}": an array of {value.dtype} does not match {spec.datatype}: convert it with '
            f'.astype("{expected}"), or ask the client to with cast=True'
        )

    def _wrong_shape(self, spec: TensorSpec, array: np.ndarray[Any, Any]) -> InvalidArgument:
        return self._error(f'"{spec.name}": shape {list(array.shape)} does not match {list(spec.shape)}')

    def _error(self, what: str) -> InvalidArgument:
        return InvalidArgument(f'model "{self._model}": {what}', model=self._model)


class _Crops:
    """The one crop of a request whose tensors were padded."""

    def __init__(self) -> None:
        self.found: Crop | None = None

    def note(self, crop: Crop) -> None:
        if self.found is not None and self.found != crop:
            raise InvalidArgument(f"inputs of one request hold {self.found.valid} and {crop.valid} rows")
        self.found = crop


def _usual(signature: StreamSignature) -> _Usual | None:
    if len(signature.inputs) + len(signature.states) != 1 or signature.streams > 1:
        return None
    spec = signature.states[0].tensor if signature.states else signature.inputs[0]
    kind = numpy_type(spec.datatype)
    shapes = (spec.shape, spec.shape[1:]) if signature.states and spec.shape[:1] == (1,) else (spec.shape,)
    return None if kind is None else _Usual(spec.name, spec.datatype, kind, shapes)


def _key(state: StateInput, part: Part) -> str:
    return part.keys[0] if part.keys else state.tensor.name


def _with_axes(array: np.ndarray[Any, Any], rank: int, channels: int) -> np.ndarray[Any, Any]:
    """An update may leave out the axis of the batch, and that of channels where there is one."""
    if array.ndim == rank - 1:
        return array[None]
    if array.ndim == rank - 2 and channels == 1:
        return array[None, None]
    return array


def _padded(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    padded = np.zeros(shape, array.dtype)
    padded[tuple(slice(size) for size in array.shape)] = array
    return padded

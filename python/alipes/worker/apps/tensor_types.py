"""Which annotations are tensors: datatype, shape, and how a function sees them."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np

__all__ = ["ArraySpec", "TensorType", "array_spec", "tensor_type", "v2_datatype", "without_none"]

Form = Literal["scalar", "list", "array"]

_SCALARS: Final[Mapping[Any, str]] = {bool: "BOOL", int: "INT64", float: "FP64", str: "BYTES", bytes: "BYTES"}
_LISTS: Final = (list, tuple, Sequence)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array as an annotation describes it.

    Attributes:
        dtype: Its type; None where any will do.
        shape: Its sizes, None for one that varies; None as a whole where any number of axes will do.
    """

    dtype: np.dtype[Any] | None = None
    shape: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class TensorType:
    """How an argument or a result looks as a tensor.

    Attributes:
        datatype: Of the V2 protocol, such as `FP32`.
        dims: Sizes, -1 for one that varies, as in `config.pbtxt`: without the batch dimension where the model batches.
        form: What the function sees: one Python value, a list of them, or an array.
        python: Type of the values of a scalar or a list.
        is_row: Whether a row of the batch is one value, which has the shape [1] on the wire.
    """

    datatype: str
    dims: tuple[int, ...]
    form: Form
    python: Any = None
    is_row: bool = False


def v2_datatype(dtype: np.dtype[Any]) -> str | None:
    """The datatype of the V2 protocol for a type of numpy; None where there is none."""
    if dtype.kind in "OSU":
        return "BYTES"
    if dtype.kind == "b":
        return "BOOL"
    letters = {"i": "INT", "u": "UINT", "f": "FP"}
    size = dtype.itemsize * 8
    fits = dtype.kind in letters and (dtype.kind != "f" or size in (16, 32, 64)) and size <= 64
    return f"{letters[dtype.kind]}{size}" if fits else None


def array_spec(annotation: Any) -> ArraySpec | None:
    """What an annotation says of an array; None where it is none.

    `np.ndarray`, `NDArray[np.float32]`, `np.ndarray[tuple[int, int], np.dtype[np.float32]]`, and
    `Annotated[np.ndarray, np.float32, (None, 4)]`: the sizes of a tuple, None for one that varies.
    """
    if typing.get_origin(annotation) is Annotated:
        inner, *metadata = typing.get_args(annotation)
        found = array_spec(inner)
        if found is None:
            return None
        shapes = [tuple(one) for one in metadata if isinstance(one, tuple)]
        kinds = [dtype for one in metadata if not isinstance(one, tuple) and (dtype := _dtype(one)) is not None]
        return ArraySpec(kinds[0] if kinds else found.dtype, shapes[0] if shapes else found.shape)
    if annotation is np.ndarray:
        return ArraySpec()
    if typing.get_origin(annotation) is not np.ndarray:
        return None
    shape, kind = typing.get_args(annotation)
    scalars = typing.get_args(kind)
    return ArraySpec(_dtype(scalars[0]) if scalars else None, _declared_shape(shape))


def tensor_type(annotation: Any, *, batched: bool) -> TensorType | None:
    """How a value of an annotation looks as a tensor; None where it is none.

    Args:
        annotation: The annotation of an argument or of a result.
        batched: Whether its first axis, or the list that it is, is the batch.
    """
    spec = array_spec(annotation)
    if spec is not None:
        return _array_tensor(spec, batched)
    if batched:
        item = _item(annotation)
        return TensorType(_SCALARS[item], (1,), "list", item, is_row=True) if item in _SCALARS else None
    if annotation in _SCALARS:
        return TensorType(_SCALARS[annotation], (1,), "scalar", annotation)
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        datatype = v2_datatype(np.dtype(annotation))
        return TensorType(datatype, (1,), "scalar", annotation) if datatype else None
    item = _item(annotation)
    return TensorType(_SCALARS[item], (-1,), "list", item) if item in _SCALARS else None


def without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without its None, and whether it had one."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = typing.get_args(annotation)
        others = [one for one in members if one is not type(None)]
        if len(others) == 1 and len(members) == 2:
            return others[0], True
    return annotation, False


def _array_tensor(spec: ArraySpec, batched: bool) -> TensorType | None:
    datatype = v2_datatype(spec.dtype) if spec.dtype is not None else None
    if datatype is None:
        return None
    shape = (None, None) if spec.shape is None and batched else (None,) if spec.shape is None else spec.shape
    sizes = shape[1:] if batched else shape
    dims = tuple(-1 if size is None else size for size in sizes)
    return TensorType(datatype, dims or (1,), "array", is_row=not dims)


def _item(annotation: Any) -> Any:
    """Type of the items of a list; None where it is none."""
    if typing.get_origin(annotation) not in _LISTS:
        return None
    items = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple and not (len(items) == 2 and items[1] is Ellipsis):
        return None
    return items[0]


def _declared_shape(shape: Any) -> tuple[int | None, ...] | None:
    sizes = typing.get_args(shape)
    if typing.get_origin(shape) is not tuple or Ellipsis in sizes:
        return None
    numbers = [typing.get_args(size)[:1] for size in sizes]  # Literal[4] is the size 4
    return tuple(number[0] if number and type(number[0]) is int else None for number in numbers)


def _dtype(thing: Any) -> np.dtype[Any] | None:
    try:
        return np.dtype(thing) if thing is not None and thing is not Any else None
    except TypeError:
        return None

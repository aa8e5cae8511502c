"""Types that JSON does not know and functions take all the same: arrays, pictures, pydantic's models."""

from __future__ import annotations

import binascii
import io
import math
import sys
from typing import Any, Final

import numpy as np

from alipes.errors import Cancelled
from alipes.worker.apps.callers import CallersFile
from alipes.worker.apps.jpeg import check_jpeg
from alipes.worker.apps.misfit import TOO_LARGE, Misfit
from alipes.worker.apps.records import RecordOf, made
from alipes.worker.apps.tensor_types import ArraySpec, array_spec
from alipes.worker.apps.unions import FirstOf, fitting

__all__ = [
    "MAX_PIXELS",
    "PICTURE_FORMATS",
    "ArrayOf",
    "array_of",
    "from_json",
    "is_custom",
    "is_picture",
    "is_pydantic",
    "to_json",
]

MAX_PIXELS: Final = 178_956_970
"""Most pixels of a picture, which Pillow warns of by default: a small file can claim far more."""

PICTURE_FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""Formats that pictures are read from, as Pillow names them: what cameras, browsers and scanners write.

Pillow would try some forty readers and take the one that the file asks for. That of EPS starts Ghostscript, which runs
the program in the file.
"""

_ACCEPTED: Final = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "c": "iufc", "O": "OSU", "S": "OSU", "U": "OSU"}
"""Kinds of numpy that JSON may have where a kind is wanted; empty arrays, which are of no kind, always fit."""

_ITEMS: Final = frozenset((list, bool, int, float, str))
"""What a document may have in the place of an array: nested lists, or one item."""

_INTEGERS: Final = ("i", "u")
_REALS: Final = ("f", "c")

_WORDS: Final = {"b": "bool", "i": "int", "u": "int", "f": "float", "O": "str", "S": "str", "U": "str"}


class _AnyArray(type):
    """Makes every array an instance of the classes that stand for arrays: msgspec asks."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, np.ndarray)


class ArrayOf(metaclass=_AnyArray):
    """Stands for an array in the types that documents are read into; `array_of` makes a subclass for each kind."""

    spec: ArraySpec = ArraySpec()


def array_of(spec: ArraySpec) -> Any:
    """The class that stands for arrays of one kind."""
    return _AnyArray("ArrayOf", (ArrayOf,), {"spec": spec})


def is_picture(kind: Any) -> bool:
    """Whether a type is Pillow's picture; Pillow is not imported for the question."""
    names = (getattr(kind, "__module__", None), getattr(kind, "__qualname__", None))
    return names == ("PIL.Image", "Image")


def is_pydantic(kind: Any) -> bool:
    """Whether a type is a model of pydantic; pydantic is not imported for the question."""
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate")


def is_custom(kind: Any) -> bool:
    """Whether `from_json` can make values of a type."""
    is_ours = isinstance(kind, type) and issubclass(kind, FirstOf | RecordOf)
    return is_ours or _spec(kind) is not None or is_picture(kind) or is_pydantic(kind)


def from_json(kind: Any, value: Any) -> Any:
    """Makes a value of a type that JSON does not know.

    Args:
        kind: The type.
        value: What the document has there; bytes where it was a file.

    Raises:
        Misfit: If the value does not fit.
    """
    spec: ArraySpec | None = kind.spec if type(kind) is _AnyArray else _spec(kind)  # type: ignore[attr-defined]
    if spec is not None:
        return _array(spec, value)
    if is_picture(kind):
        return _picture(value)
    if isinstance(kind, type) and issubclass(kind, FirstOf):
        return fitting(kind, value, from_json)
    if isinstance(kind, type) and issubclass(kind, RecordOf):
        return made(kind, value, from_json)
    return _validated(kind, value)


def to_json(value: Any) -> Any:
    """What stands in a document for a value that JSON does not know.

    Raises:
        TypeError: If nothing can stand for it.
    """
    if isinstance(value, np.ndarray):
        return [_text(item) for item in value.tolist()] if value.dtype.kind == "O" else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if is_pydantic(type(value)):
        return value.model_dump(mode="json")
    if any(is_picture(kind) for kind in type(value).__mro__):
        return png(value)  # base64, as all bytes
    raise TypeError(f"a {type(value).__name__} cannot be answered as JSON; return numbers, texts, lists, dictionaries")


def png(picture: Any) -> bytes:
    """A picture as a PNG file."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _spec(kind: Any) -> ArraySpec | None:
    if isinstance(kind, type) and issubclass(kind, ArrayOf):
        return kind.spec
    return array_spec(kind)


def _text(item: Any) -> Any:
    if isinstance(item, list):
        return [_text(one) for one in item]
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else item


def _array(spec: ArraySpec, value: Any) -> np.ndarray:
    if type(value) not in _ITEMS:
        raise Misfit(f"expected {_describe(spec)}, got {_json_name(value)}")
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise Misfit(f"expected {_describe(spec)}, got lists of different lengths") from error
    dtype = spec.dtype
    kind = raw.dtype.kind
    wanted = dtype.kind if dtype is not None else ""
    if (kind == "O" or kind not in _ACCEPTED.get(wanted, "biufU")) and raw.size:
        raise _first_misfit(spec, value, "")
    if spec.shape is not None and raw.shape != spec.shape and not _has_shape(raw, spec.shape):
        raise Misfit(f"expected {_describe(spec)}, got shape {list(raw.shape)}")
    if dtype is None:
        return raw
    with np.errstate(over="ignore"):  # found below
        array = raw.astype(dtype, copy=False)
    if wanted in _REALS and not np.isfinite(array).all():
        at = "".join(f"[{index}]" for index in np.argwhere(~np.isfinite(array))[0])
        raise Misfit(f"expected a number of {dtype}, got one out of its range", path=at)
    if wanted == "O":
        return np.asarray(_as_bytes(array), object)
    if wanted in _INTEGERS and raw.size and not np.array_equal(array, raw):
        at = "".join(f"[{index}]" for index in np.argwhere(array != raw)[0])
        raise Misfit(f"expected an integer of {dtype}, got one out of its range", path=at)
    return array


def _has_shape(array: np.ndarray, shape: tuple[int | None, ...]) -> bool:
    return len(shape) == array.ndim and all(
        wanted is None or wanted == size for wanted, size in zip(shape, array.shape, strict=True)
    )


_as_bytes: Final = np.frompyfunc(lambda item: item.encode() if isinstance(item, str) else item, 1, 1)
"""Texts of an array of objects as bytes, which they are in a tensor too."""


def _first_misfit(spec: ArraySpec, value: Any, path: str) -> Misfit:
    """The first item that is not what the array is of."""
    kind = spec.dtype.kind if spec.dtype is not None else "f"
    wanted: Any = {"b": bool, "i": int, "u": int, "f": (int, float)}.get(kind, str)
    queue = [(path, value)]
    while queue:
        at, one = queue.pop()
        if isinstance(one, list):
            queue += [(f"{at}[{index}]", item) for index, item in reversed(list(enumerate(one)))]
        elif not isinstance(one, wanted) or (isinstance(one, bool) and kind != "b"):
            return Misfit(f"expected {_WORDS.get(kind, 'float')}, got {_json_name(one)}", path=at)
        elif isinstance(one, int) and abs(one) > sys.maxsize:
            return Misfit(f"expected a number of {spec.dtype}, got an integer that is too large", path=at)
    return Misfit(f"expected {_describe(spec)}")


def _describe(spec: ArraySpec) -> str:
    kind = f" of {spec.dtype}" if spec.dtype is not None else ""
    sizes = "" if spec.shape is None else f" of shape {[-1 if size is None else size for size in spec.shape]}"
    return f"an array{kind}{sizes}"


def _json_name(value: Any) -> str:
    names = {dict: "object", list: "array", type(None): "null", str: "str", bool: "bool"}
    return names.get(type(value), type(value).__name__)


def _picture(value: Any) -> Any:
    from PIL import Image, UnidentifiedImageError

    data = value if isinstance(value, bytes) else _from_base64(value)
    check_jpeg(data)
    try:
        picture = Image.open(CallersFile(data), formats=PICTURE_FORMATS)
        if math.prod(picture.size) > MAX_PIXELS:
            size = " x ".join(map(str, picture.size))
            raise Misfit(f"the picture has {size} pixels, more than {MAX_PIXELS} in all", status=TOO_LARGE)
        picture.load()
    except UnidentifiedImageError as error:
        *others, last = PICTURE_FORMATS
        kinds = f"{', '.join(others)} or {last}"
        raise Misfit(f"expected a picture, which is a file of {kinds}, got bytes of another kind") from error
    except Image.DecompressionBombError as error:
        raise Misfit(f"the picture has more than {MAX_PIXELS} pixels", status=TOO_LARGE) from error
    except (Misfit, Cancelled):
        raise
    except Exception as error:  # Pillow's readers raise many kinds for files that are damaged
        raise Misfit(f"the picture cannot be read: {error}") from error
    return picture


def _from_base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Misfit(f"expected a picture in base64, got {_json_name(value)}")
    text = value.partition(",")[2] if value.startswith("data:") else value
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise Misfit("expected a picture in base64, got a text that is no base64") from error


def _validated(kind: Any, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise Misfit(str(first["msg"]), path=path) from error

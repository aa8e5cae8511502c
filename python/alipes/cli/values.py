"""A value that a person types for a tensor: a number, JSON, text, the content of a file; as an array that fits."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.cli.failures import CommandFailed
from alipes.client.signature import TensorSpec

__all__ = ["Array", "array_of", "content_array", "fitted", "json_of", "number", "parsed", "short"]

_NPY: Final = b"\x93NUMPY"
_SHOWN: Final = 40
"""Characters of a wrong value that an error repeats."""

Array = npt.NDArray[Any]


def number(word: str) -> float | None:
    """The number that a word is, `nan` and `inf` among them; `None` where it is none."""
    try:
        return float(word)
    except ValueError:
        return None


def parsed(spec: TensorSpec, word: str) -> Any:
    """One word of the command line: JSON, numbers with commas between, or text where the input takes text.

    Raises:
        CommandFailed: If it is none of these.
    """
    is_text = spec.datatype == "BYTES"
    if is_text and not word.lstrip().startswith(("[", '"')):
        return word
    try:
        return json.loads(word)
    except ValueError:
        if is_text:
            return word
    numbers = [number(part) for part in word.split(",")]
    if None in numbers:
        hint = f"@{word} reads the file" if Path(word).is_file() else "write a number, a JSON array, @FILE or -"
        raise CommandFailed(hint, f"input '{spec.name}' takes {spec.datatype}, not {short(word)}")
    return numbers if "," in word else numbers[0]


def content_array(spec: TensorSpec, content: bytes, word: str, notes: list[str]) -> Array:
    """What a file or the standard input holds: an array of `numpy.save`, JSON, or one text.

    Args:
        spec: The input that it is for.
        content: The content.
        word: What was typed for it: `@FILE` or `-`.
        notes: Gets a sentence where the datatype is changed.

    Raises:
        CommandFailed: If it is none of these, or does not fit the input.
    """
    if content.startswith(_NPY):
        return _cast(spec, _loaded(content, word), notes)
    if spec.datatype == "BYTES" and not word.endswith(".json"):
        # A shell's `echo` ends with a line end that nobody means.
        text = content.removesuffix(b"\n") if word == "-" else content
        return array_of(spec, _strings(text) if word == "-" else text)
    return array_of(spec, json_of(content, word))


def array_of(spec: TensorSpec, value: Any) -> Array:
    """A value of JSON as an array of the input's datatype.

    Raises:
        CommandFailed: If it is ragged, or not all of it is of that datatype.
    """
    if spec.datatype == "BYTES":
        return _texts(spec, value)
    try:
        array = np.array(value)
    except (ValueError, OverflowError) as error:
        raise CommandFailed(
            f"input '{spec.name}': make all rows equally long", f"{short(json.dumps(value))} is no array"
        ) from error
    if array.dtype.kind not in "biuf":
        raise CommandFailed(
            f"input '{spec.name}' takes {spec.datatype}: write numbers", f"it was given {short(json.dumps(value))}"
        )
    return _cast(spec, array, None)


def fitted(spec: TensorSpec, array: Array) -> Array:
    """The array with the axes that it lacks, where there is only one way: a batch of one row, or one element."""
    shape = spec.shape
    if array.ndim == 0 and all(size in (-1, 1) for size in shape):
        return array.reshape((1,) * len(shape))
    if array.ndim == len(shape) - 1 and shape[0] == -1:
        rest = zip(shape[1:], array.shape, strict=True)
        if all(size in (-1, seen) for size, seen in rest):
            return array[np.newaxis]
    return array


def json_of(content: bytes | str, word: str) -> Any:
    """What JSON says.

    Raises:
        CommandFailed: If it is none.
    """
    try:
        return json.loads(content)
    except ValueError as error:
        where = "standard input" if word == "-" else word.removeprefix("@")
        raise CommandFailed(f"write JSON, or save an array with numpy.save: {where} is neither", str(error)) from error


def short(text: str) -> str:
    """A value as an error repeats it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _strings(text: bytes) -> Any:
    """A JSON array of strings, or the text itself."""
    if not text.lstrip().startswith((b"[", b'"')):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _texts(spec: TensorSpec, value: Any) -> Array:
    array: Array = np.empty((), object)
    if isinstance(value, str | bytes):
        array[()] = _encoded(spec, value)
        return array
    try:
        array = np.array(value, object)
    except ValueError:
        array = np.empty(0, object)
    if not array.size or not all(isinstance(one, str) for one in array.flat):
        raise CommandFailed(
            f"input '{spec.name}' takes BYTES: write text, or a JSON array of strings",
            f"it was given {short(json.dumps(value))}",
        )
    return np.array([_encoded(spec, one) for one in array.flat], object).reshape(array.shape)


def _encoded(spec: TensorSpec, text: str | bytes) -> bytes:
    """The bytes of a text; what a shell was given as bytes that are no UTF-8 stays those bytes."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise CommandFailed(f"input '{spec.name}' takes text that UTF-8 can write", str(error)) from error


def _cast(spec: TensorSpec, array: Array, notes: list[str] | None) -> Array:
    """The array in the input's datatype, where no number changes but by rounding of fractions.

    Raises:
        CommandFailed: If a number would change, such as 1.5 for an integer.
    """
    if array.dtype == spec.dtype or array.dtype.kind in "OSU" or spec.datatype == "BYTES":
        return array
    with np.errstate(all="ignore"):
        cast = array.astype(spec.dtype)
        back = cast.astype(array.dtype)
    if spec.dtype.kind != "f" and not np.array_equal(back, array):
        raise CommandFailed(f"input '{spec.name}' takes {spec.datatype}", f"{array[back != array].flat[0]} is none")
    if notes is not None:
        notes.append(f"input '{spec.name}' was given as {array.dtype.name} and is sent as {spec.datatype}")
    return cast


def _loaded(content: bytes, word: str) -> Array:
    try:
        array: Array = np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        raise CommandFailed(
            f"save numbers or text with numpy.save, not as in {word.removeprefix('@')}", str(error)
        ) from error
    return array

"""The options that say what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.settings import SentData, Sequences
from alipes.compat.perf_analyzer.values import choice, named_parameter, named_shape, parts
from alipes.compat.perf_analyzer.words import Words

__all__ = ["read_data", "read_sequences"]


def read_data(words: Words) -> SentData:
    """The values of requests, and how they travel.

    Raises:
        OptionFailed: If a value cannot be read.
    """
    plain = SentData()
    kinds = ("binary", "json")
    wanted = "The available options are 'binary' or 'json'."
    return SentData(
        words.whole("batch", plain.batch, 1, "-b (batch size)"),
        words.has("batch"),
        _source(words),
        dict(named_shape(argument) for argument in words.all("shape")),
        words.whole("string-length", plain.text_length, 1, wanted="> 0"),
        words.text("string-data") if words.has("string-data") else None,
        words.read("input-tensor-format", lambda argument: choice(argument, kinds, wanted), "binary") == "json",
        words.read("output-tensor-format", lambda argument: choice(argument, kinds, wanted), "binary") == "json",
        dict(named_parameter(argument) for argument in words.all("request-parameter")),
        words.read("shared-memory", _memory, plain.shared_memory),
        words.whole("output-shared-memory-size", plain.output_bytes, 0),
    )


def _memory(argument: Argument) -> Literal["none", "system", "cuda"]:
    wanted = "The available options are 'system', 'cuda', or 'none'."
    kind = choice(argument, ("system", "cuda", "none"), wanted)
    return cast(Literal["none", "system", "cuda"], kind)


def _source(words: Words) -> Literal["random", "zero"] | Sequence[Path]:
    written = words.all("input-data", "data-directory")
    paths: list[Path] = []
    named: Literal["random", "zero"] = "zero" if words.has("zero") else "random"
    for argument in written:
        path = Path(argument.value)
        if argument.value in ("random", "zero"):
            named = cast(Literal["random", "zero"], argument.value)
            paths.clear()
        elif path.exists():
            paths.append(path)
        else:
            raise OptionFailed(
                f"Failed to parse --input-data. Unsupported type provided: '{argument.value}'. "
                "The available options are 'zero', 'random', path to a directory, or a json file."
            )
    return paths or named


def read_sequences(words: Words) -> Sequences:
    """Lengths and correlation ids.

    Raises:
        OptionFailed: If a value cannot be read.
    """
    plain = Sequences()
    first, last = plain.first_id, plain.last_id
    if (argument := words.last("sequence-id-range")) is not None:
        first, last = _ids(argument)
    length = words.whole("sequence-length", plain.length, -(2**31))
    return Sequences(
        length if length > 0 else plain.length,
        words.real("sequence-length-variation", plain.variation_percent, wanted=">= 0.0."),
        first,
        last,
        words.whole("num-of-sequences", plain.count, 1),
        length > 0 and words.has("sequence-length"),
    )


def _ids(argument: Argument) -> tuple[int, int | None]:
    values = parts(argument)
    if len(values) > 2:  # a start and an end
        raise OptionFailed(f"Failed to parse {argument.written}. The value does not match <start:end>.")
    if min(values) < 0:
        raise OptionFailed(f"Failed to parse {argument.written}. The range values must be >= 0.")
    first, last = (*values, None)[:2]
    if last is not None and last <= (first or 0):
        raise OptionFailed(f"Failed to parse {argument.written}. The 'end' value must be greater than 'start' value.")
    return first or 1, last

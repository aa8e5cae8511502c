"""The tables of `parameters` that native steps may carry, and how their values are read.

A step has no file: what it does is in its parameters alone. So a key that is not known is refused, where other backends
ignore it: a misspelt `mean` would else be answered with wrong numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from alipes.config.limits import MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE, MAX_TEXT_BYTES, PICTURE_PIXELS, TEXT_BYTES
from alipes.config.nearest import nearest_first
from alipes.config.parameters import Parameter
from alipes.config.values import read_int
from alipes.errors import ConfigError

__all__ = [
    "DETOKENIZER_PARAMETERS",
    "MEAN_POOLING_PARAMETERS",
    "PICTURE_PARAMETERS",
    "SOFTMAX_PARAMETERS",
    "TOKENIZER_PARAMETERS",
    "TOP_K_PARAMETERS",
    "StepParameters",
]

_MAX_CLASSES: Final = 1 << 20
"""Most best classes: more than any network has."""

_MAX_TOKENS: Final = 1 << 16
"""Most tokens of a text, as in the data plane."""

PICTURE_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        "resize",
        "text",
        "works",
        "Size after resizing: `224x160` is width and height, `256` the shorter side, where the longer one keeps its "
        "proportion. Without it pictures keep their size.",
    ),
    Parameter(
        "resize_filter",
        "text",
        "works",
        "`bilinear`, `bicubic`, `lanczos`, `box` or `nearest`, each bit for bit as in Pillow; `bilinear` if left out.",
    ),
    Parameter(
        "crop",
        "text",
        "works",
        "Part that is cut out of the centre, after resizing: `224x160`, or `224` for a square. Black where the picture "
        "does not reach.",
    ),
    Parameter("channels", "text", "works", "`RGB`, `BGR` or `L` (grey); `RGB` if left out."),
    Parameter("layout", "text", "works", "`NCHW` or `NHWC`; `NCHW` if left out."),
    Parameter("dtype", "text", "works", "`FP32`, or `UINT8` for bytes as they are; `FP32` if left out."),
    Parameter(
        "scale",
        "text",
        "works",
        "What bytes are multiplied by, such as `1/255` or `0.5`; `1/255` if left out. For `FP32` alone, like the two "
        "that follow.",
    ),
    Parameter(
        "mean",
        "text",
        "works",
        "What is taken away after scaling: one number, or one for each channel in the order of `channels`, such as "
        "`0.485, 0.456, 0.406`; 0 if left out.",
    ),
    Parameter("std", "text", "works", "What is divided by at the end, written like `mean`; 1 if left out."),
    Parameter(
        "exif_orientation", "switch", "works", "1 turns pictures as their EXIF data say, 0 leaves them; 1 if left out."
    ),
    Parameter(
        "max_pixels",
        "count",
        "works",
        f"Most pixels of a picture, also on its way to another size; {PICTURE_PIXELS} if left out. Larger ones are "
        "refused before memory is taken.",
    ),
)

SOFTMAX_PARAMETERS: Final[tuple[Parameter, ...]] = ()

TOP_K_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("k", "count", "works", "How many classes; 5 if left out and no output is listed."),
    Parameter("softmax", "switch", "works", "1 makes the scores of a row shares of one first; 0 if left out."),
    Parameter(
        "labels",
        "text",
        "works",
        "File in the model's folder with a name on each line, as `label_filename` of the output of names. Without one, "
        "classes are called by their numbers.",
    ),
)

MEAN_POOLING_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("normalize", "switch", "works", "1 makes each mean a vector of length 1; 0 if left out."),
)

TOKENIZER_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        "max_length",
        "count",
        "works",
        "Tokens after which a text is truncated, those that mark its ends included; as the file says if left out.",
    ),
    Parameter(
        "padding",
        "text",
        "works",
        "`longest` fills up to the longest text that is tokenized at the same time, `max_length` to that length; "
        "`longest` if left out, or the fixed length of the file.",
    ),
    Parameter(
        "pad_to_multiple_of",
        "count",
        "works",
        "What the length of rows is a multiple of, so that a network sees few shapes; as the file says if left out.",
    ),
    Parameter("special_tokens", "switch", "works", "0 leaves out the tokens that mark ends; 1 if left out."),
    Parameter(
        "pair",
        "switch",
        "works",
        "1 lists a second input, `text_pair`, where no input is listed; 0 if left out.",
    ),
    Parameter(
        "max_text_bytes",
        "count",
        "works",
        f"Longest text in bytes; {TEXT_BYTES} if left out. Longer ones are refused.",
    ),
)

DETOKENIZER_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("special_tokens", "switch", "works", "1 keeps the tokens that mark ends, or fill up; 0 if left out."),
)

_SIZE: Final = re.compile(r"(\d{1,5})(?:x(\d{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StepParameters:
    """What a step's parameters say, read by key; a wrong value is an error that names the key.

    Attributes:
        name: The model's name, for messages.
        texts: Key to text.
    """

    name: str
    texts: Mapping[str, str]

    @classmethod
    def read(cls, rows: Sequence[Parameter], texts: Mapping[str, str], name: str, backend: str) -> StepParameters:
        """Take the parameters of a configuration.

        Raises:
            ConfigError: If there is no such key.
        """
        known = [row.key for row in rows]
        for key in sorted(texts):
            if key not in known:
                raise ConfigError(
                    f"parameter '{key}' of model '{name}' is unknown: backend '{backend}' has "
                    f"{nearest_first(key, known)}",
                    key=f"parameters.{key}",
                )
        return cls(name, texts)

    def switch(self, key: str, default: bool) -> bool:
        """Yes or no, written 1 or 0."""
        return bool(self._integer(key, int(default), 0, 1))

    def classes(self, key: str) -> int | None:
        """A number of classes; None where it is not given."""
        return self._integer(key, None, 1, _MAX_CLASSES)

    def pixels(self, key: str) -> int:
        """A limit on pixels."""
        return self._integer(key, PICTURE_PIXELS, 1, MAX_PICTURE_PIXELS) or PICTURE_PIXELS

    def tokens(self, key: str) -> int | None:
        """A number of tokens; None where it is not given."""
        return self._integer(key, None, 1, _MAX_TOKENS)

    def text_bytes(self, key: str) -> int:
        """A limit on texts."""
        return self._integer(key, TEXT_BYTES, 1, MAX_TEXT_BYTES) or TEXT_BYTES

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of several words, in letters of any size; the first where it is not given."""
        text = self.texts.get(key, choices[0])
        found = next((choice for choice in choices if choice.lower() == text.strip().lower()), None)
        if found is None:
            raise self._wrong(key, "one of " + ", ".join(choices))
        return found

    def size(self, key: str) -> tuple[int, int | None] | None:
        """A size in pixels: width and height, or one number and None; None where it is not given."""
        text = self.texts.get(key)
        if text is None:
            return None
        match = _SIZE.fullmatch(text.strip())
        sides = [int(side) for side in match.groups() if side] if match else []
        if not sides or not all(1 <= side <= MAX_PICTURE_SIDE for side in sides):
            raise self._wrong(key, f"a size such as 224x224 or 256, of 1 to {MAX_PICTURE_SIDE} pixels on a side")
        return sides[0], sides[1] if len(sides) == 2 else None

    def fraction(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """A number that may be written as a fraction: what is above and below the bar."""
        text = self.texts.get(key)
        if text is None:
            return default
        above, bar, below = text.partition("/")
        numbers = [_number(above), _number(below) if bar else 1.0]
        if None in numbers or 0.0 in numbers:
            raise self._wrong(key, "a number other than 0, or two with a bar between, such as 1/255")
        return numbers[0] or 1.0, numbers[1] or 1.0

    def numbers(self, key: str, default: float, count: int, *, zero: bool) -> list[float]:
        """One number, or `count` of them.

        Args:
            key: The key.
            default: What each is where the key is not given.
            count: How many there are.
            zero: Whether 0 is among the numbers allowed.
        """
        text = self.texts.get(key, repr(default))
        found = [_number(part) for part in text.replace(",", " ").split()]
        numbers = [number for number in found if number is not None and (zero or number != 0)]
        if len(numbers) != len(found) or len(numbers) not in {1, count}:
            raise self._wrong(key, f"one number{'' if zero else ' other than 0'}, or one for each of {count} channels")
        return numbers if len(numbers) == count else numbers * count

    def _integer(self, key: str, default: int | None, low: int, high: int) -> int | None:
        text = self.texts.get(key)
        if text is None:
            return default
        value = read_int(text, low, high)
        if value is None:
            raise self._wrong(key, f"an integer from {low} to {high}")
        return value

    def _wrong(self, key: str, expected: str) -> ConfigError:
        return ConfigError(
            f"parameter '{key}' of model '{self.name}' must be {expected}, got '{self.texts[key]}'",
            key=f"parameters.{key}",
        )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 1e30 else None  # single precision ends at 3e38

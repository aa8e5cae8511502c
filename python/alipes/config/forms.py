"""The two forms of the command line: ours, and Triton's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from alipes.config.command_line import split_arguments
from alipes.config.flags import Flag, Kind, Value
from alipes.config.triton_command_line import PROGRAM, parse_triton_value, split_triton_arguments
from alipes.config.values import parse_value

__all__ = ["OURS", "TRITONS", "Form"]


class ParseValue(Protocol):
    """Reads the value of a flag."""

    def __call__(self, name: str, kind: Kind, text: str, *, choices: tuple[str, ...], low: int, high: int) -> Value:
        """The value; raises ConfigError for a text that is none."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the command line.

    Attributes:
        usage: The first line of its usage.
        split: Takes it apart into flags with their texts, and positional arguments.
        parse_value: Reads the value of a flag.
        defaults: Values of flags that were not given, by name, where they differ from the table of flags.
    """

    usage: str
    split: Callable[[Sequence[str]], tuple[list[tuple[Flag, str]], list[str]]]
    parse_value: ParseValue
    defaults: Mapping[str, Value] = field(default_factory=dict)


OURS: Final = Form("alipes serve [options] REPOSITORY...", split_arguments, parse_value)
"""`alipes serve`: repositories are named by themselves, switches stand alone, slips of the pen are pointed out."""

TRITONS: Final = Form(f"{PROGRAM} [options]", split_triton_arguments, parse_triton_value, {"exit-on-error": True})
"""`tritonserver`: what its scripts and images give, to the letter."""

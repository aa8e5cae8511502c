"""The two forms of the command line: ours, and Triton's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from alipes.config.flag_text import FlagText
from alipes.config.flags import Flag, Value
from alipes.config.triton_command_line import parse_triton_value, split_triton_arguments

__all__ = ["OURS", "TRITONS", "Form"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the command line.

    Attributes:
        split: Takes it apart into flags with their texts, and positional arguments.
        read: Reads the value of a flag that was given; raises ConfigError for a text that is none.
        defaults: Values of flags that were not given, by name, where they differ from the table of flags.
        on_platforms: Whether variables count that platforms set for every program, such as `PORT`.
    """

    split: Callable[[Sequence[str]], tuple[list[tuple[Flag, str]], list[str]]]
    read: Callable[[FlagText], Value]
    defaults: Mapping[str, Value] = field(default_factory=dict)
    on_platforms: bool = False


def _split(argv: Sequence[str]) -> tuple[list[tuple[Flag, str]], list[str]]:
    # With it comes click, which `tritonserver` does not need: 20 to 25 ms of CPU time, where a server without models is
    # ready after 165 (`alipes serve` beside `alipes tritonserver`, medians of 12, two busy cores, November 2026).
    from alipes.config.command_line import split_arguments

    return split_arguments(argv)


def _read_as_triton(one: FlagText) -> Value:
    flag = one.flag
    name = f"--{flag.name}"  # Triton tells some of its flags apart by it
    return parse_triton_value(name, flag.kind, one.text, choices=flag.choices, low=flag.low, high=flag.high)


OURS: Final = Form(_split, FlagText.read, on_platforms=True)
"""`alipes serve`: repositories are named by themselves, switches stand alone, slips of the pen are pointed out."""

# Not through click: `getopt_long` gives an option the word behind it whatever that is, takes the beginning of a name,
# and goes on behind a mistake. Scripts and images of Triton are written for that.
TRITONS: Final = Form(split_triton_arguments, _read_as_triton, {"exit-on-error": True})
"""`tritonserver`: what its scripts and images give, to the letter."""

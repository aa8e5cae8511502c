"""The words of a command line as options with values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.options import BY_LONG, BY_SHORT, Option

__all__ = ["Argument", "parse"]

_PROGRAM = "perf_analyzer: "


@dataclass(frozen=True, slots=True)
class Argument:
    """An option as somebody wrote it.

    Attributes:
        option: Which one.
        written: Its name on the command line, in full.
        value: Its value; empty for a switch.
    """

    option: Option
    written: str
    value: str = ""


def parse(words: Sequence[str]) -> list[Argument]:
    """Reads a command line: `--option value`, `--option=value`, `-o value`, `-ovalue`, and long names cut short.

    What is no option is left alone, as perf_analyzer does.

    Raises:
        OptionFailed: If an option is unknown, or lacks its value.
    """
    found: list[Argument] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            found.append(_long(word, rest))
        elif word.startswith("-") and word != "-":
            found.extend(_short(word, rest))
    return found


def _long(word: str, rest: list[str]) -> Argument:
    name, equals, value = word.removeprefix("--").partition("=")
    option = BY_LONG.get(name) or _abbreviated(name)
    written = f"--{option.long}"
    if not option.value:
        if equals:
            raise OptionFailed(f"option '{written}' doesn't allow an argument", _PROGRAM)
        return Argument(option, written)
    if not equals:
        if not rest:
            raise OptionFailed(f"option '{written}' requires an argument", _PROGRAM)
        value = rest.pop(0)
    return Argument(option, written, value)


def _abbreviated(name: str) -> Option:
    fitting = [option for long, option in BY_LONG.items() if long.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting or not name:
        raise OptionFailed(f"unrecognized option '--{name}'", _PROGRAM)
    names = " ".join(f"'--{option.long}'" for option in fitting)
    raise OptionFailed(f"option '--{name}' is ambiguous; possibilities: {names}", _PROGRAM)


def _short(word: str, rest: list[str]) -> list[Argument]:
    found = []
    for place, letter in enumerate(word[1:], start=2):
        option = BY_SHORT.get(letter)
        if option is None:
            raise OptionFailed(f"invalid option -- '{letter}'", _PROGRAM)
        if not option.value:
            found.append(Argument(option, f"-{letter}"))
            continue
        value = word[place:]
        if not value:
            if not rest:
                raise OptionFailed(f"option requires an argument -- '{letter}'", _PROGRAM)
            value = rest.pop(0)
        found.append(Argument(option, f"-{letter}", value))
        break
    return found

"""What a person reads who typed something wrong: the mend first, four lines at most."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, Final

from alipes.cli.unknown import Command, unknown_option
from alipes.synonyms import SYNONYMS, Synonym, synonym

USAGE_ERROR: Final = 2
"""Exit code for a command line that cannot be read."""

_WIDTH: Final = 80
_MOST_LINES: Final = 4

_EXTRA: Final = re.compile(r"extra argument(?:s|\(s\))? \((.*)\)", re.DOTALL)

_OURS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r": Input should be greater than or equal to (\S+)"), r" takes a number from \1 on"),
    (re.compile(r": Input should be less than or equal to (\S+)"), r" takes a number up to \1"),
    (re.compile(r": Input should be a valid integer\b.*"), " takes a whole number"),
    (re.compile(r": Input should be a valid number\b.*"), " takes a number"),
    # As releases before typer 0.29 say it, which leave values to click.
    (re.compile(r" \(env var: '\w+'\)"), ""),
    (re.compile(r": (\S+) is not in the range (\S+)<=x<=(\S+)"), lambda found: _beyond(*found.groups())),
    (re.compile(r": '.*' is not a valid int(eger)?( range)?$"), " takes a whole number"),
    (re.compile(r": '.*' is not a valid float( range)?$"), " takes a number"),
    (re.compile(r"extra arguments? \("), "extra argument(s) ("),
)
"""What the command line library says of a value, and what we say."""


def show_mistake(text: str) -> None:
    """Prints a message for people on standard error, folded to 80 columns and at most four lines long."""
    print(fold(f"error: {text}"), file=sys.stderr)


def fold(text: str) -> str:
    """The text in lines of at most 80 columns, the further ones indented; four lines at most.

    Commands and paths stay whole, however long, so that they can be copied. Where long paths make too many lines, the
    lines stay as they are.
    """
    first, *others = text.splitlines()
    lines = [first, *(f"  {line}" for line in others)]
    folded = [part for line in lines for part in ([line] if line.startswith("  alipes ") else _wrapped(line))]
    return "\n".join(folded if len(folded) <= _MOST_LINES else lines[:_MOST_LINES])


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def usage_mistake(at: Command, error: Exception) -> str | None:
    """What to say about a command line that the command line library refused; None for any other error.

    The error is known by its attributes: typer may bring classes of its own, whose names are not public.

    Args:
        at: The command that refused it.
        error: What it raised.
    """
    called = at.called
    if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
        return None
    option = getattr(error, "option_name", None)
    possible: Iterable[str] | None = getattr(error, "possibilities", None)
    if option is not None and (possible is not None or _is_unknown(error)):
        return unknown_option(at, option)
    parameter: Any = getattr(error, "param", None)
    missing = parameter is not None and not str(getattr(error, "message", ""))
    if missing and parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).upper().removesuffix("...")
        article = "" if name.endswith("S") else "an " if name[0] in "AEIO" else "a "
        return f"{called} needs {article}{name}: {called} {_arguments(at)}"
    if missing and parameter.param_type_name == "option":
        value = (parameter.metavar or "VALUE").upper()
        needs = f"{called} needs {parameter.opts[-1]} {value}"
        row = _meant(at, error)
        return f"{row.hint}\n{needs}" if row else f"{needs}\n{called} --help has examples"
    if called == "alipes loadtest" and (extra := _EXTRA.search(str(error.format_message()))):
        return f"write alipes loadtest --path /NAME --body '{_body(extra[1].split())}'\n{_sentence(error)}"
    return f"{_sentence(error)}; see\n{called} --help"


def _meant(at: Command, error: Exception) -> Synonym | None:
    """The row of a word that stands for the first argument, and is a command of another program."""
    values = getattr(getattr(error, "ctx", None), "params", {}).values()
    word = next((value for value in values if isinstance(value, str)), "")
    return synonym(at.called, word) if at.called in SYNONYMS else None


def _body(words: Iterable[str]) -> str:
    """`a=1 b=2` as the JSON of a request; an example where the words are something else."""
    pairs = [word.partition("=")[::2] for word in words]
    if not all(name.isidentifier() and value for name, value in pairs):
        return '{"a": 1}'
    return json.dumps({name: _value(value) for name, value in pairs})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _arguments(at: Command) -> str:
    """The arguments that a command needs, as its help has them."""
    arguments = [one for one in at.command.params if one.param_type_name == "argument" and one.required]
    return " ".join((one.metavar or one.name).upper() for one in arguments)


def _beyond(value: str, least: str, most: str) -> str:
    return f" takes a number from {least} on" if float(value) < float(least) else f" takes a number up to {most}"


def _is_unknown(error: Exception) -> bool:
    return str(getattr(error, "message", "")).lower().startswith("no such option")


def _sentence(error: Any) -> str:
    text = " ".join(str(error.format_message()).split()).rstrip(".").removeprefix("Invalid value for ")
    text = text.replace(": Value error, ", ": ")
    for pattern, ours in _OURS:
        text = pattern.sub(ours, text)
    return re.sub("^'(-[^']*)'", r"\1", text[:1].lower() + text[1:])

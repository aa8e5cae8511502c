"""Names of new things: what a recipe takes, and how it is spelled where."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from plan import Refused

_TEMPLATES = Path(__file__).with_name("templates")
_RUST = frozenset(
    """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl
    in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type
    typeof unsafe unsized use virtual where while yield
    """.split()  # noqa: SIM905  # a list of words reads better as words
)


def word(name: str, what: str, longest: int = 28) -> str:
    """A name that both languages take: small letters, digits and underscores; short enough for every line it is in.

    Raises:
        Refused: If it is none.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Refused(f"'{name}' is no name of a {what}: small letters, digits and underscores, a letter first")
    if len(name) > longest:
        raise Refused(f"'{name}' has {len(name)} letters, more than {longest}")
    if name in _RUST or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise Refused(f"'{name}' is a keyword")
    return name


def camel(name: str) -> str:
    """`late_answers` as `LateAnswers`."""
    return "".join(part.capitalize() for part in name.split("_"))


def arm(pattern: str, body: str, indentation: int) -> str:
    """An arm of a `match` as rustfmt writes it."""
    line = f"{pattern} => {body},"
    return line if indentation + len(line) <= 120 else f"{pattern} => {{\n    {body}\n}}"


def template(file: str, **values: str) -> str:
    """A file of the folder `templates` with its names filled in."""
    return Template((_TEMPLATES / file).read_text(encoding="utf-8")).substitute(values)

"""The fenced blocks of a Markdown page, each with its language, its argument and its line."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^ *```(?P<info>[^`\n]*)$\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        language: First word behind the fence; empty where there is none.
        argument: What follows it.
        text: The content, without the indentation that all of it shares.
        line: Line of the fence in the page, counted from 1.
    """

    language: str
    argument: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and what the page says it prints."""

    command: str
    output: str


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, in order.

    Raises:
        ValueError: If a fence is not closed.
    """
    found = []
    for match in _FENCE.finditer(page):
        language, _, argument = match["info"].strip().partition(" ")
        line = page.count("\n", 0, match.start()) + 1
        found.append(Block(language, argument.strip(), textwrap.dedent(match["text"]), line))
    if page.count("```") != 2 * len(found):
        raise ValueError("a fence is not closed")
    return found


def commands(console: str) -> list[Command]:
    """The commands of a console block: each `$ ` begins one, what follows is its output."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)
    if parts[0].strip() or len(parts) == 1:
        raise ValueError("a console block begins with `$ ` and a command")
    split = (part.partition("\n") for part in parts[1:])
    return [Command(command.strip(), output) for command, _, output in split]


def fits(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says. `...` stands for anything, at the end of a line for its end too."""
    parts = [re.escape(part) for part in re.split(r"\.\.\.\n?", expected.strip())]
    return re.fullmatch(".*".join(parts), printed.strip(), re.DOTALL) is not None


def pages(root: Path) -> list[Path]:
    """Every page that a reader is sent to: those at the root, and those in `docs`, `examples` and `bench`.

    Hidden folders there, such as an environment, hold no pages.
    """
    found = [
        *root.glob("*.md"),
        *(page for name in ("docs", "examples", "bench") for page in (root / name).rglob("*.md")),
    ]
    return sorted(page for page in found if not any(part.startswith(".") for part in page.relative_to(root).parts))

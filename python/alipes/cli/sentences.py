"""Sentences for people and for pipes: broken between words on a terminal, one line each elsewhere."""

from __future__ import annotations

import sys
import textwrap
from typing import TextIO

from rich.console import Console

__all__ = ["print_sentence"]


def print_sentence(text: str, *, file: TextIO | None = None, indent: str = "  ") -> None:
    """Prints a sentence.

    A terminal would break it in the middle of a word; here it is broken between words, the further lines indented. A
    pipe gets it as one line, so that programs find it whole.

    Args:
        text: The sentence, without a line end.
        file: Where to print; standard output by default.
        indent: What further lines begin with.
    """
    console = Console(file=file if file is not None else sys.stdout)
    lines = [text]
    if console.is_terminal:
        lines = textwrap.wrap(
            text, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    print("\n".join(lines), file=file, flush=True)

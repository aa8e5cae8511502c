"""Python's syntax trees, for tests that look at sources."""

from __future__ import annotations

import ast
import gc
from pathlib import Path

__all__ = ["syntax_tree"]


def syntax_tree(source: Path | str) -> ast.Module:
    """The tree of a file, or of a text.

    Nothing is collected meanwhile: what is collected may log a traceback, whose carets are found by parsing, and
    CPython before 3.11.8 and 3.12.2 fails with `SystemError` where a tree is made while another one is.
    """
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()

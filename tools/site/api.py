"""The pages of the Python API: one for each package with public names, which its docstrings fill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import griffe

PACKAGES = ("client", "errors", "monitor", "progress", "repository", "serve", "streaming")


def pages(root: Path) -> Mapping[str, str]:
    """Path within the site to Markdown, in which each public name is a line that mkdocstrings replaces.

    Read, never imported: the extension need not be built.
    """
    package = griffe.load("alipes", search_paths=[root / "python"], allow_inspection=False)
    return {f"api/{name}.md": _page(f"alipes.{name}", package[name]) for name in PACKAGES}


def _page(name: str, module: griffe.Object | griffe.Alias) -> str:
    about = module.docstring.value if module.docstring else ""
    names = "".join(f"\n::: {name}.{public}\n" for public in module.exports or ())
    return f"# {name}\n\n{about}\n{names}"

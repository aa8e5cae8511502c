"""The pages of the Python API: one for each package with public names, which its docstrings fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import griffe

PACKAGES = (
    "advise",
    "attached",
    "client",
    "errors",
    "explainers",
    "loadtest",
    "monitor",
    "predictor",
    "progress",
    "repository",
    "serve",
    "streaming",
    "tune",
)
# The page of names that `alipes` offers and none of the packages does.
REST = "serve"


def pages(root: Path) -> Mapping[str, str]:
    """Path within the site to Markdown, in which mkdocstrings replaces the line of each public name.

    Read, never imported: the extension need not be built.
    """
    alipes = griffe.load("alipes", search_paths=[root / "python"], allow_inspection=False)
    offered = [name for name in _exports(alipes) if not name.startswith("__")]
    own = {package: _exports(alipes[package]) for package in PACKAGES}
    rest = sorted(set(offered).difference(*own.values()))
    return {
        f"api/{package}.md": _page(alipes[package], names, offered, rest if package == REST else ())
        for package, names in own.items()
    }


def _exports(module: griffe.Object | griffe.Alias) -> Sequence[str]:
    """What a package offers, as its `__all__` says."""
    return [str(name) for name in module.exports or ()]


def _page(
    module: griffe.Object | griffe.Alias, names: Sequence[str], offered: Sequence[str], more: Sequence[str]
) -> str:
    about = module.docstring.value if module.docstring else ""
    short = [name for name in (*names, *more) if name in offered]
    imports = [_import("alipes", short), _import(module.path, [name for name in names if name not in offered])]
    entries = [f"::: {module.path}.{name}" for name in names] + [f"::: alipes.{name}" for name in more]
    return "\n\n".join([f"# {module.path}", about, "```python\n" + "".join(imports) + "```", *entries]) + "\n"


def _import(package: str, names: Sequence[str]) -> str:
    """The line that imports them, wrapped as the code of the project is."""
    if not names:
        return ""
    line = f"from {package} import {', '.join(names)}\n"
    return (
        line if len(line) <= 80 else f"from {package} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"
    )

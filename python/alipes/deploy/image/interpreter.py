"""Python itself, with the part of its standard library that servers may import."""

from __future__ import annotations

import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Final

from alipes.deploy.image.contents import Contents, Entry, file, link, tree
from alipes.errors import ConfigError

__all__ = ["PREFIX", "PYTHON", "RELEASE", "interpreter", "program"]

RELEASE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"

PREFIX: Final = "usr/local"
"""Where Python lies in an image, wherever it lies here: it finds its library by where its program is."""

PYTHON: Final = f"{PREFIX}/bin/python{RELEASE}"

_UNUSED: Final = frozenset(
    {
        "__pycache__",
        # Tests, by the names that they have in packages of the library.
        "test",
        "tests",
        # Windows with buttons, and what shows off with them.
        "idlelib",
        "tkinter",
        "turtle.py",
        "turtledemo",
        # pip in a wheel; rewriting of Python 2; texts of the interactive help.
        "ensurepip",
        "lib2to3",
        "pydoc_data",
        # Packages have a layer of their own.
        "dist-packages",
        "site-packages",
    }
)
_UNUSED_PATTERNS: Final = ("config-*", "_test*.so", "_ctypes_test*", "_tkinter*", "nis.*", "xx*.so", "*.a", "*.exe")
_SETTINGS: Final = ("_sysconfigdata_*.py", "_sysconfig_vars_*.json", "build-details.json")
"""How Python was built: with paths of this machine, which an image has no need of. The last two are of Python 3.14."""

_USUAL: Final = ("/usr", f"/{PREFIX}")
"""Prefixes that say nothing of this machine; every path begins with the first."""


def program() -> Path:
    """Python's program: that which an environment of packages leads to.

    Raises:
        ConfigError: If it is not found.
    """
    for path in (Path(sys.base_prefix) / "bin" / f"python{RELEASE}", Path(sys.executable)):
        if path.is_file():
            return path.resolve()
    raise ConfigError(f"Python's program is not in {sys.base_prefix}/bin", path=sys.base_prefix)


def interpreter() -> Contents:
    """Python's program and its library.

    Raises:
        ConfigError: If one of them is not found or cannot be read.
    """
    library = Path(sysconfig.get_path("stdlib"))
    into = PurePosixPath(PREFIX, sys.platlibdir, f"python{RELEASE}")
    found: Contents = {PYTHON: file(program(), runs=True), f"{PREFIX}/bin/python3": link(f"python{RELEASE}")}
    for path, source in tree(library, without=_UNUSED):
        if not any(fnmatch(part, pattern) for part in path.parts for pattern in _UNUSED_PATTERNS):
            found[str(into / path)] = _settings(source) if _tells_of_here(path) else file(source)
    return found


def _tells_of_here(path: PurePosixPath) -> bool:
    return sys.base_prefix not in _USUAL and any(fnmatch(path.name, pattern) for pattern in _SETTINGS)


def _settings(source: Path) -> Entry:
    entry = file(source)
    here, there = sys.base_prefix.encode(), f"/{PREFIX}".encode()
    return Entry(entry.mode, data=entry.read().replace(here, there))

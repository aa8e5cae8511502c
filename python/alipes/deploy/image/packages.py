"""The installed packages that a server needs: which they are, and their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import alipes
from alipes.config.nearest import nearest
from alipes.deploy.image.contents import Contents, Entry, file, tree
from alipes.errors import ConfigError, Unsupported

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = ["Package", "find_packages"]

_OURS: Final = ("alipes-core", "alipes")
"""The names under which our package is installed: alone, or with an engine."""

_ENGINES: Final = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino")
"""Packages that hold the same module; one of them is enough."""

_UNUSED: Final = frozenset({"__pycache__", "tests", "include"})
_UNUSED_ENDINGS: Final = (".pyc", ".pyi", ".pyx", ".pxd", ".h", ".hpp", ".c", ".cpp", ".a")
_OF_INSTALLERS: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "WHEEL"})
"""Files in which installers note how and where something was installed, which differs from machine to machine."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package.

    Attributes:
        name: Its name, as the index spells it.
        version: Its version.
        licence: Its licence, in the words of its metadata; empty where they say nothing.
        contents: Its files, by their path in the folder of packages.
        ours: Whether it is alipes itself.
    """

    name: str
    version: str
    licence: str
    contents: Contents
    ours: bool


def find_packages(extras: Iterable[str] = (), more: Iterable[str] = ()) -> list[Package]:
    """The package alipes and every package that it requires here, by name.

    Args:
        extras: Extras of alipes whose packages are needed too.
        more: Further packages, such as those that Python models import; an extra may stand behind, as in `dask[array]`.

    Raises:
        ConfigError: If an extra is not known, or a package is not installed whole.
        Unsupported: If the library that reads requirements is not installed.
    """
    names = [name for name in _OURS if _installed(name) is not None]
    if not names:
        raise ConfigError("alipes is not installed as a package here: install it with `pip install alipes`")
    wanted = sorted(set(extras))
    _check_extras(names[-1], wanted)
    roots = [f"{name}[{','.join(wanted)}]" if wanted else name for name in names]
    engine = [name for name in _ENGINES if _installed(name) is not None][:1]
    found = _closure([*roots, *engine, *more])
    return [_package(found[name], name in _OURS) for name in sorted(found)]


def _check_extras(name: str, wanted: Iterable[str]) -> None:
    known = distribution(name).metadata.get_all("Provides-Extra") or []
    for extra in wanted:
        if extra not in known:
            close = nearest(extra, known)
            hint = f"did you mean {close}?" if close else f"there are {', '.join(known)}"
            raise ConfigError(f"alipes has no extra '{extra}'", key="--extra", hint=hint)


def _closure(roots: Iterable[str]) -> dict[str, Distribution]:
    """What is required, and what that requires, by normalised names."""
    requirement, normalised = _reader()
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement(root), "") for root in roots]
    while waiting:
        one, by = waiting.pop()
        name = normalised(one.name)
        installed = _installed(name)
        if installed is None:
            if name in _ENGINES and any(engine in found for engine in _ENGINES):
                continue
            raise ConfigError(
                f"{one.name}{f', which {by} requires,' if by else ''} is not installed", hint=f"pip install {one.name}"
            )
        found[name] = installed
        for extra in ("", *sorted(one.extras)):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            lines = map(requirement, installed.requires or ())
            waiting += [(line, name) for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]
    return found


def _reader() -> tuple[type[Requirement], Callable[[str], str]]:
    try:
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name
    except ImportError as error:
        raise Unsupported(
            "images need the package packaging: install it with `pip install 'alipes[deploy]'`"
        ) from error
    return Requirement, canonicalize_name


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _package(installed: Distribution, ours: bool) -> Package:
    name = installed.metadata["Name"]
    contents = dict(_listed(installed))
    if _is_linked(installed):
        if not ours:
            raise ConfigError(f"{name} is a link to its sources here: install it whole, with `pip install` and no -e")
        contents |= _ours()
    return Package(name, installed.version, _licence(installed), contents, ours)


def _listed(installed: Distribution) -> Iterator[tuple[str, Entry]]:
    """The files that the list of an installed package names, without those that no server reads."""
    if installed.files is None:
        name = installed.metadata["Name"]
        raise ConfigError(f"the list of the files of {name} is not here: install it with `pip install {name}`")
    for path in installed.files:
        source = Path(str(installed.locate_file(path)))
        if _is_used(path) and source.is_file():
            yield str(path), file(source)


def _ours() -> Contents:
    """The folder of our own package, where it is the folder of its sources."""
    root = Path(alipes.__file__).parent
    inside = ((PurePosixPath("alipes", path), source) for path, source in tree(root, without=_UNUSED))
    return {str(path): file(source) for path, source in inside if _is_used(path)}


def _is_used(path: PurePosixPath) -> bool:
    if path.parts[0] == ".." or path.is_absolute() or _UNUSED.intersection(path.parts[:-1]):
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.name not in _OF_INSTALLERS and "sboms" not in path.parts
    return not path.name.endswith((*_UNUSED_ENDINGS, ".pth"))


def _is_linked(installed: Distribution) -> bool:
    """Whether it was installed with `pip install -e`."""
    try:
        return bool(json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"))
    except ValueError:
        return False


def _licence(installed: Distribution) -> str:
    metadata = installed.metadata
    words = next((str(metadata[key]).strip() for key in ("License-Expression", "License") if key in metadata), "")
    if words and "\n" not in words:
        return words
    named = [one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or [] if one.startswith("License ::")]
    return ", ".join(named) or words.partition("\n")[0]

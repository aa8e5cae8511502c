"""What a layer of an image holds: files, folders and links, by their path in the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from alipes.errors import ConfigError

__all__ = ["Contents", "Entry", "Hashes", "file", "folder", "link", "text", "tree", "with_folders"]

_PLAIN: Final = 0o644
_PROGRAM: Final = 0o755
_FOLDER: Final = 0o755
_RUNS: Final = 0o111


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link of an image: one of `source`, `data`, `target`, or none for a folder.

    Attributes:
        mode: The permissions. Nothing belongs to a user of its own: any user of the container can read it.
        source: The file of this machine that it is a copy of.
        data: The content itself.
        target: Where a link leads.
    """

    mode: int
    source: Path | None = None
    data: bytes | None = None
    target: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether it has a content."""
        return self.source is not None or self.data is not None

    def read(self) -> bytes:
        """The content of a file.

        Raises:
            ConfigError: If the file of this machine cannot be read.
        """
        if self.source is None:
            return self.data or b""
        try:
            return self.source.read_bytes()
        except OSError as error:
            raise ConfigError(f"{self.source} cannot be read: {error.strerror}", path=self.source) from error


class Hashes:
    """SHA-256 of files, in hexadecimal digits; each file of this machine is read once."""

    def __init__(self) -> None:
        """Knows none."""
        self._known: dict[Path, str] = {}

    def of(self, entry: Entry) -> str:
        """That of a file's content.

        Raises:
            ConfigError: If it cannot be read.
        """
        if entry.source is None:
            return sha256(entry.data or b"").hexdigest()
        if entry.source not in self._known:
            self._known[entry.source] = sha256(entry.read()).hexdigest()
        return self._known[entry.source]


Contents: TypeAlias = dict[str, Entry]
"""Paths without the slash in front."""


def file(source: Path, *, runs: bool | None = None) -> Entry:
    """A copy of a file, readable by everybody.

    Args:
        source: The file.
        runs: Whether it is a program; by default if it is one for anybody here.
    """
    if runs is None:
        runs = bool(source.stat().st_mode & _RUNS)
    return Entry(_PROGRAM if runs else _PLAIN, source=source)


def text(content: str, mode: int = _PLAIN) -> Entry:
    """A file of this content."""
    return Entry(mode, data=content.encode())


def folder(mode: int = _FOLDER) -> Entry:
    """A folder."""
    return Entry(mode)


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry(0o777, target=target)


def with_folders(contents: Mapping[str, Entry]) -> Contents:
    """The same, with the folders above each path that are not named, in the order of the paths."""
    parents = {str(parent) for path in contents for parent in PurePosixPath(path).parents if str(parent) != "."}
    whole = {parent: folder() for parent in parents} | dict(contents)
    return dict(sorted(whole.items()))


def tree(
    root: Path, *, without: frozenset[str] = frozenset(), skips: Callable[[Path], bool] | None = None
) -> Iterator[tuple[PurePosixPath, Path]]:
    """The files below a folder, through links, each with its path from there.

    Args:
        root: The folder.
        without: Names of files and folders that are left out wherever they are.
        skips: Whether a file or folder is left out, asked for each in the order of the names.

    Raises:
        ConfigError: If a folder cannot be listed, a link leads nowhere, or links lead in a circle.
    """
    return _walk(
        root, PurePosixPath(), lambda one: one.name in without or (skips is not None and skips(one)), frozenset()
    )


def _walk(
    root: Path, path: PurePosixPath, skips: Callable[[Path], bool], above: frozenset[Path]
) -> Iterator[tuple[PurePosixPath, Path]]:
    real = root.resolve()
    if real in above:
        raise ConfigError(f"{root} leads in a circle: remove the link", path=root)
    try:
        found = sorted(root.iterdir(), key=lambda one: one.name)
    except OSError as error:
        raise ConfigError(f"{root} cannot be listed: {error.strerror}", path=root) from error
    for one in found:
        if skips(one):
            continue
        if one.is_dir():
            yield from _walk(one, path / one.name, skips, above | {real})
        elif one.is_file():
            yield path / one.name, one
        elif one.is_symlink():
            raise ConfigError(f"{one} leads nowhere: mend or remove the link", path=one)

"""Unpacks archives that somebody else has made: zip, and tar with or without compression.

Nothing is written outside the folder, and nothing but files, folders and links that stay in it: a path with `..`, an
absolute one, a device, a pipe or a link that leads out refuses the archive as a whole. So does one that holds more than
the limits allow; sizes are counted as they are written, whatever the archive says of itself.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Final

from alipes.errors import RepositoryError
from alipes.repository.storage.limits import (
    FREE_EXPANSION_BYTES,
    FREE_SHARE,
    MAX_DEPTH,
    MAX_EXPANSION,
    MAX_FILES,
    MAX_NAME_BYTES,
)

__all__ = ["Budget", "is_archive", "unpack"]

_BLOCK_BYTES: Final = 1 << 20
_BROKEN: Final = (
    EOFError,
    LZMAError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of archives raise for damaged ones, and for encrypted ones."""

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
"""Names that say in a layer of an image what the layers below lose. Source: OCI image specification, "Whiteouts"."""


class Budget:
    """What one store may still unpack."""

    def __init__(self, archive_bytes: int, folder: Path) -> None:
        """Starts with what an archive of this size may become.

        Args:
            archive_bytes: The size of what is unpacked, in bytes.
            folder: Where to.
        """
        free = int(shutil.disk_usage(folder).free * FREE_SHARE)
        self._bytes = min(max(archive_bytes * MAX_EXPANSION, FREE_EXPANSION_BYTES), free)
        self._all = self._bytes
        self._files = MAX_FILES

    def take(self, count: int) -> None:
        """Counts bytes that are about to be written.

        Raises:
            RepositoryError: If these are too many.
        """
        self._bytes -= count
        if self._bytes < 0:
            raise RepositoryError(f"it becomes more than {self._all} bytes, which is all that it may take here")

    def take_entry(self) -> None:
        """Counts a file, a folder or a link.

        Raises:
            RepositoryError: If these are too many.
        """
        self._files -= 1
        if self._files < 0:
            raise RepositoryError(f"it holds more than {MAX_FILES} files")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry: a folder, a file with what reads it, or a link with its target."""

    name: str
    open: Callable[[], IO[bytes] | None] | None = None
    link: str = ""
    is_hard: bool = False
    is_executable: bool = False


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that is unpacked, by its bytes. Some files of models are archives themselves."""
    if path.suffix.lower() in _MODELS_THAT_ARE_ARCHIVES:
        return False
    try:
        return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)
    except _BROKEN:
        return False


_MODELS_THAT_ARE_ARCHIVES: Final = (".pt", ".pth", ".pt2", ".keras", ".skops", ".npz", ".mar")


def unpack(file: Path, folder: Path, budget: Budget | None = None, *, is_layer: bool = False) -> None:
    """Unpack an archive into a folder.

    Args:
        file: The archive.
        folder: An existing folder; for a layer that of the layers below.
        budget: What may still be unpacked; by the size of the file where left out.
        is_layer: Whether it is a layer of an image, whose marks take files of the layers below away.

    Raises:
        RepositoryError: If the archive breaks a rule or a limit, or is damaged. The folder is to be thrown away then.
    """
    budget = budget or Budget(file.stat().st_size, folder)
    try:
        if not is_layer and zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                _write_all(_of_zip(archive), folder, budget)
        else:
            with tarfile.open(file, "r:*") as tar:
                _write_all(_of_tar(tar), folder, budget, is_layer=is_layer)
                _read_to_end(tar, budget)
    except RepositoryError as error:
        raise RepositoryError(f"archive '{file.name}' is refused: {error}") from error
    except _BROKEN as error:
        raise RepositoryError(f"archive '{file.name}' cannot be unpacked: {error}") from error


def _read_to_end(tar: tarfile.TarFile, budget: Budget) -> None:
    """A compressed archive that was cut off shows only at its end, where its sum is."""
    assert tar.fileobj is not None
    while block := tar.fileobj.read(_BLOCK_BYTES):
        budget.take(len(block))


def _of_zip(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for one in archive.infolist():
        mode = one.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if kind == stat.S_IFLNK:
            if one.file_size > MAX_NAME_BYTES:
                raise RepositoryError(f"the link '{one.filename}' is too long")
            yield _Entry(one.filename, link=archive.read(one).decode(errors="surrogateescape"))
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise RepositoryError(f"'{one.filename}' is neither a file nor a folder")
        elif one.is_dir():
            yield _Entry(one.filename)
        else:
            yield _Entry(one.filename, lambda one=one: archive.open(one), is_executable=bool(mode & 0o100))  # type: ignore[misc]


def _of_tar(archive: tarfile.TarFile) -> Iterator[_Entry]:
    for one in archive:
        if one.isdir():
            yield _Entry(one.name)
        elif one.isreg():
            yield _Entry(one.name, lambda one=one: archive.extractfile(one), is_executable=bool(one.mode & 0o100))  # type: ignore[misc]
        elif one.issym() or one.islnk():
            yield _Entry(one.name, link=one.linkname, is_hard=one.islnk())
        else:
            raise RepositoryError(f"'{one.name}' is neither a file nor a folder")


def _write_all(entries: Iterator[_Entry], folder: Path, budget: Budget, *, is_layer: bool = False) -> None:
    """Writes files and folders as they come, and links behind them: no file is written through a link."""
    links: list[tuple[Path, _Entry]] = []
    for entry in entries:
        budget.take_entry()
        place = _place(entry.name, folder)
        if place is None:
            continue
        if is_layer and place.name.startswith(_WHITEOUT):
            _take_away(place)
            continue
        _check_way(place.parent, folder)
        if entry.link:
            links.append((place, entry))
        elif entry.open is None:
            _make_room(place, is_layer=is_layer, for_folder=True)
            place.mkdir(parents=True, exist_ok=True)
        else:
            _make_room(place, is_layer=is_layer)
            _write_file(place, entry, budget)
    for place, entry in links:
        _check_way(place.parent, folder)
        _make_room(place, is_layer=is_layer)
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_hard:
            _copy(place, entry, folder, budget)
        else:
            place.symlink_to(entry.link)
    for place, entry in links:
        if not entry.is_hard:
            _check_link(place, entry, folder)


def _write_file(place: Path, entry: _Entry, budget: Budget) -> None:
    assert entry.open is not None
    source = entry.open()
    if source is None:
        raise RepositoryError(f"'{entry.name}' cannot be read")
    place.parent.mkdir(parents=True, exist_ok=True)
    with source, place.open("xb") as file:
        while block := source.read(_BLOCK_BYTES):
            budget.take(len(block))
            file.write(block)
    if entry.is_executable:
        place.chmod(0o755)


def _copy(place: Path, entry: _Entry, folder: Path, budget: Budget) -> None:
    """A second name of a file is a copy of it."""
    source = _place(entry.link, folder)
    if source is None or not source.is_file() or source.is_symlink():
        raise RepositoryError(f"'{entry.name}' is another name of '{entry.link}', which is no file of it")
    _check_way(source.parent, folder)
    budget.take(source.stat().st_size)
    shutil.copyfile(source, place)


def _place(name: str, folder: Path) -> Path | None:
    """Where an entry is written; None for the folder itself.

    Raises:
        RepositoryError: If its name leads elsewhere, or is none that can be had.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    shown = name[:80]
    if path.is_absolute() or ".." in path.parts or "\0" in name or (path.parts and path.parts[0].endswith(":")):
        raise RepositoryError(f"'{shown}' leads out of its folder")
    if len(path.parts) > MAX_DEPTH or len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
        raise RepositoryError(f"'{shown}' lies more than {MAX_DEPTH} folders deep, or is longer than {MAX_NAME_BYTES}")
    return folder / path if path.parts else None


def _check_way(parent: Path, folder: Path) -> None:
    """Refuse a place that is reached through a link: of an archive, or of a layer below."""
    for one in (parent, *parent.parents):
        if one == folder:
            return
        if one.is_symlink() or (one.exists() and not one.is_dir()):
            raise RepositoryError(f"'{one.relative_to(folder)}' is no folder, and something lies in it")


def _make_room(place: Path, *, is_layer: bool, for_folder: bool = False) -> None:
    """A name stands once in an archive; in a layer it takes the place of what the layers below have there."""
    if not place.is_symlink() and not place.exists():
        return
    if for_folder and place.is_dir() and not place.is_symlink():
        return
    if not is_layer:
        raise RepositoryError(f"it holds '{place.name}' twice")
    _remove(place)


def _take_away(mark: Path) -> None:
    if mark.name == _OPAQUE:
        for one in tuple(mark.parent.iterdir()) if mark.parent.is_dir() and not mark.parent.is_symlink() else ():
            _remove(one)
    else:
        _remove(mark.with_name(mark.name.removeprefix(_WHITEOUT)))


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _check_link(place: Path, entry: _Entry, folder: Path) -> None:
    try:
        end = place.resolve(strict=False)
    except (OSError, RuntimeError) as error:  # a circle
        raise RepositoryError(f"the link '{entry.name}' leads nowhere") from error
    if not end.is_relative_to(folder.resolve()):
        raise RepositoryError(f"the link '{entry.name}' leads out of its folder, to '{entry.link[:80]}'")

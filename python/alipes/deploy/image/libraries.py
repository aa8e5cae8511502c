"""The shared libraries that programs and packages load from the system."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from alipes.deploy.image.elf import ElfFile, read_elf
from alipes.errors import ConfigError

__all__ = ["Libraries", "find_libraries"]

_LIBC: Final = "libc.so.6"
_TIMEOUT_S: Final = 30.0

_OPENED_LATER: Final = ("libgcc_s.so.1", "libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
"""What glibc itself opens while it runs, so that no file names it: to end threads, and to find users and hosts."""


@dataclass(slots=True)
class Libraries:
    """What was found.

    Attributes:
        loader: The file that starts programs, by the path that programs name.
        folder: Where the system has its C library: the loader searches there by itself.
        files: The libraries, by name.
        missing: Names that are not here, each with a file that names it.
    """

    loader: tuple[str, Path]
    folder: Path
    files: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, Path] = field(default_factory=dict)


def find_libraries(program: Path, others: Iterable[Path]) -> Libraries:
    """What a program and libraries load, and what that loads, apart from these libraries themselves.

    Args:
        program: Python's.
        others: Files of packages; those that are no libraries are passed over.

    Raises:
        ConfigError: If the system's C library is not glibc, or a file is damaged.
    """
    start = read_elf(program)
    if platform.libc_ver(str(program))[0] != "glibc" or start is None or not start.interpreter:
        raise ConfigError("images are made where Python stands on glibc: this one does not", path=program)
    installed = dict(_read_all(others))
    search = _Search(start.machine)
    libc = search.find(_LIBC, ())
    if libc is None:
        raise ConfigError(f"{_LIBC} is not found, though {program} loads it: is ldconfig installed?", path=program)
    result = Libraries((start.interpreter.lstrip("/"), Path(start.interpreter).resolve()), libc.resolve().parent)
    result.files |= {name: found for name in _OPENED_LATER if (found := search.find(name, ())) is not None}
    names = {path.name for path in installed} | {Path(start.interpreter).name}
    waiting: list[tuple[Path, ElfFile]] = [
        (program, start),
        *sorted(installed.items()),
        *_read_all(result.files.values()),
    ]
    while waiting:
        path, elf = waiting.pop()
        for name in elf.needed:
            if name in names or name in result.files or name in result.missing:
                continue
            library = search.find(name, _folders(path, elf))
            if library is None:
                result.missing[name] = path
            else:
                result.files[name] = library
                waiting.extend(_read_all([library]))
    return result


def _read_all(paths: Iterable[Path]) -> Iterator[tuple[Path, ElfFile]]:
    for path in paths:
        if (elf := read_elf(path)) is not None:
            yield path, elf


def _folders(path: Path, elf: ElfFile) -> tuple[Path, ...]:
    """The folders that a file names, with its own in the place of `$ORIGIN`."""
    origin = str(path.resolve().parent)
    return tuple(Path(one.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for one in elf.searched)


class _Search:
    """Where the loader looks, for files of one architecture."""

    def __init__(self, machine: int) -> None:
        self._machine = machine

    def find(self, name: str, folders: Iterable[Path]) -> Path | None:
        """The first library of a name, in these folders and then among those that the system knows."""
        places: list[Path] = [one / name for one in folders]
        for path in places + _known().get(name, []):
            if path.is_file() and (elf := read_elf(path)) is not None and elf.machine == self._machine:
                return path
        return None


@cache
def _known() -> dict[str, list[Path]]:
    """The libraries of the system by name, as its own list has them."""
    for program in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            listed = subprocess.run(
                [program, "-p"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, errors="replace"
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        known: dict[str, list[Path]] = {}
        for line in listed.splitlines():
            left, arrow, path = line.partition(" => ")
            if arrow:
                known.setdefault(left.split()[0], []).append(Path(path.strip()))
        return known
    return {}

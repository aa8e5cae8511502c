"""Which process listens on a port of this machine, as far as Linux lets us see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Holder", "port_holder"]

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that listens on a port.

    Attributes:
        pid: Its process id.
        name: Its program, as `ps` and `top` show it.
    """

    pid: int
    name: str


def port_holder(port: int, proc: Path = _PROC) -> Holder | None:
    """The process that listens on a port; None where there is none, or it belongs to another user.

    Args:
        port: The port.
        proc: Where the system tells of processes and sockets.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    if not sockets:
        return None
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        if _opened(folder, sockets):
            return Holder(int(folder.name), _name(folder))
    return None


def _listening(port: int, proc: Path) -> Iterator[str]:
    """The inodes of the sockets that listen on a port."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _opened(folder: Path, sockets: set[str]) -> bool:
    """Whether a process has one of these sockets open; no for one that we may not look at, or that has ended."""
    try:
        return any(os.readlink(entry) in sockets for entry in (folder / "fd").iterdir())  # noqa: PTH115  # it is no path
    except OSError:
        return False


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"

"""Paths that a configuration names inside its model's folder."""

from __future__ import annotations

from errno import EINVAL
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal

from alipes.errors import ConfigError

__all__ = ["PathKind", "confined", "kind_of", "read_regular", "regular_size"]

PathKind = Literal["file", "folder", "other", "nothing"]
"""What a path leads to; a pipe, a socket or a device is something other."""


def confined(folder: Path, name: str, key: str) -> Path:
    """The path of a file that a configuration names.

    A load request can carry a configuration, so the name may come from the network: it must not lead out of the folder.

    Args:
        folder: The folder that the name is relative to.
        name: What the configuration says.
        key: The field that says it, for the message.

    Raises:
        ConfigError: If the name is absolute or climbs out of the folder.
    """
    parts = Path(name).parts
    if Path(name).is_absolute() or ".." in parts or "\0" in name:
        raise ConfigError(f"'{key}' must name a file inside the model's folder, got '{name}'", key=key)
    return folder / name


def kind_of(path: Path) -> PathKind:
    """What a path leads to: nothing, too, where it cannot be looked at, or no file can have such a name.

    The methods of a path raise for some of these.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return "nothing"
    return "folder" if S_ISDIR(mode) else "file" if S_ISREG(mode) else "other"


def read_regular(path: Path) -> str:
    """The text of a file.

    Raises:
        FileNotFoundError: If there is none.
        OSError: If it cannot be read, or is no regular file: to open a pipe would wait for its writer.
        UnicodeDecodeError: If it is no text.
    """
    regular_size(path)
    return path.read_text(encoding="utf-8")


def regular_size(path: Path) -> int:
    """The size of a file in bytes.

    Raises:
        FileNotFoundError: If there is none.
        OSError: If it cannot be looked at, or is no regular file: a pipe would make its reader wait, and a device never
            end.
    """
    seen = path.stat()
    if not S_ISREG(seen.st_mode):
        raise OSError(EINVAL, "it is no regular file")
    return seen.st_size

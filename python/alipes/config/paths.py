"""Paths that a configuration names inside its model's folder."""

from __future__ import annotations

from errno import EINVAL
from pathlib import Path

from alipes.errors import ConfigError

__all__ = ["confined", "read_regular"]


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


def read_regular(path: Path) -> str:
    """The text of a file.

    Raises:
        FileNotFoundError: If there is none.
        OSError: If it cannot be read, or is no regular file: to open a pipe would wait for whoever writes to it.
        UnicodeDecodeError: If it is no text.
    """
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, "it is no regular file")
    return path.read_text(encoding="utf-8")

"""From what a repository is called to the store that holds it."""

from __future__ import annotations

import os
from typing import Any

from alipes.errors import RepositoryError
from alipes.repository.store.base import Store

__all__ = ["open_store"]


def open_store(root: str | os.PathLike[str], **options: Any) -> Store:
    """Open the place where a repository lies, making it if it is missing.

    Args:
        root: A folder.
        options: What the place needs to be opened; folders need nothing.

    Raises:
        RepositoryError: If nothing here opens such a place, or an option is unknown.
    """
    scheme, separator, rest = os.fspath(root).partition("://")
    if separator and scheme != "file":
        raise RepositoryError(f"{root}: repositories at {scheme}:// are not offered by this release, only folders")
    if options:
        names = ", ".join(f"'{name}'" for name in options)
        raise RepositoryError(f"{root} is a folder, which takes no options, got {names}")
    from alipes.repository.store.local import LocalFileSystem

    return LocalFileSystem(rest if separator else root)

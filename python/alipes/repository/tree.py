"""A repository as a picture of folders and files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.store.base import Store

__all__ = ["print_tree"]


def print_tree(repository: ModelRepository | str | os.PathLike[str], file: IO[str] | None = None) -> None:
    """Print the folders and files of a repository, those of a folder below its name and further in.

    Args:
        repository: A repository, or where it lies.
        file: Where to print; standard output where left out.
    """
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.store.open import open_store

    if isinstance(repository, ModelRepository):
        store = repository.fs
        name = Path(str(store)).name
    else:
        store = open_store(repository)
        name = str(repository)
    for line in (f"{name.rstrip('/')}/", *_lines(store, "", 1)):
        print(line, file=file)


def _lines(store: Store, path: str, depth: int) -> Iterator[str]:
    names = store.list(path)
    folders = [name for name in names if store.isdir(store.join(path, name))]
    for name in folders:
        yield f"{'    ' * depth}{name}/"
        yield from _lines(store, store.join(path, name), depth + 1)
    for name in names:
        if name not in folders:
            yield f"{'    ' * depth}{name}"

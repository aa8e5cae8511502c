"""The models of a repository, as a layer of an image."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.nearest import nearest
from alipes.deploy.image.contents import Contents, file, folder, tree
from alipes.deploy.image.settings import MODELS
from alipes.errors import ConfigError
from alipes.repository.inspection import inspect
from alipes.repository.store.open import open_store

__all__ = ["find_models"]

_UNUSED: Final = frozenset({"__pycache__", ".git", ".ipynb_checkpoints"})


def find_models(repository: str) -> tuple[list[str], Contents]:
    """The names of the models, and the files of the repository.

    Raises:
        ConfigError: If there is no such folder, it holds no model, or a file of it cannot be read.
    """
    root = Path(repository)
    if "://" in repository:
        raise ConfigError(
            f"{repository} is no folder",
            hint=f"leave it out, and start the image as `IMAGE --model-repository={repository}`",
        )
    if not root.is_dir():
        raise ConfigError(f"there is no folder {root}", path=root, hint=_hint(root))
    models = [one.name for one in inspect(open_store(root, create=False)).models]
    if not models:
        raise ConfigError(
            f"{root} holds no models",
            path=root,
            hint="name the folder whose folders are models, as `alipes repo tree` shows",
        )
    into = MODELS.lstrip("/")
    found: Contents = {into: folder()}
    # Folders without files count: an ensemble's version is one.
    for one in sorted(root.rglob("*")):
        if one.is_dir() and not _UNUSED.intersection(one.relative_to(root).parts):
            found[f"{into}/{one.relative_to(root)}"] = folder()
    found |= {f"{into}/{path}": file(source) for path, source in tree(root, without=_UNUSED)}
    for entry in found.values():
        if entry.source is not None:
            _check_readable(entry.source)
    return models, found


def _hint(root: Path) -> str:
    there = [one.name for one in root.parent.iterdir() if one.is_dir()] if root.parent.is_dir() else []
    close = nearest(root.name, there)
    return f"did you mean {root.parent / close}?" if close else "name the folder that holds the models"


def _check_readable(source: Path) -> None:
    try:
        source.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}", path=source) from error

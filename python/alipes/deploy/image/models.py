"""The models of a repository, as a layer of an image."""

from __future__ import annotations

from pathlib import Path

from alipes.config.nearest import nearest
from alipes.deploy.image.contents import Contents, folder
from alipes.deploy.image.selection import CACHES, Selection, is_secret, select
from alipes.deploy.image.settings import MODELS
from alipes.errors import ConfigError
from alipes.repository.inspection import inspect
from alipes.repository.store.open import open_store

__all__ = ["find_models"]


def find_models(repository: str) -> Selection:
    """The models of a repository with its files, apart from those that hold a secret.

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
    folders: Contents = {into: folder()}
    # Folders without files count: an ensemble's version is one.
    for one in sorted(root.rglob("*")):
        inner = one.relative_to(root)
        if one.is_dir() and not any(part in CACHES or is_secret(Path(part)) for part in inner.parts):
            folders[f"{into}/{inner}"] = folder()
    found, left_out = select(root, into, unused=lambda _: False)
    for entry in found.values():
        if entry.source is not None:
            _check_readable(entry.source)
    return Selection(models, folders | found, left_out)


def _hint(root: Path) -> str:
    there = [one.name for one in root.parent.iterdir() if one.is_dir()] if root.parent.is_dir() else []
    close = nearest(root.name, there)
    return f"did you mean {root.parent / close}?" if close else "name the folder that holds the models"


def _check_readable(source: Path) -> None:
    try:
        source.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}", path=source) from error

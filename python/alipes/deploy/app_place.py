"""An app in the place of a repository: `app.py` of this machine, with what lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.deploy.image.contents import Contents, file, folder, tree
from alipes.errors import ConfigError

__all__ = ["APP_FOLDER", "app_file", "find_app"]

APP_FOLDER: Final = "/app"
"""Where the folder of an app lies in an image, or is mounted."""

_UNUSED: Final = frozenset({"__pycache__", "node_modules", "image", "venv"})
"""Folders beside an app that are none of it; nor is what begins with a dot."""

_ENVIRONMENT: Final = "pyvenv.cfg"
"""The file by which an environment of Python is known."""

_MOST_FILES: Final = 10_000
"""More belong to something else than an app: a home folder, a data set."""


def app_file(repository: str) -> Path | None:
    """The file of an app; None for a repository."""
    path = Path(repository)
    return path if "://" not in repository and path.suffix == ".py" and not path.is_dir() else None


def find_app(path: Path) -> tuple[list[str], Contents]:
    """The name of an app, and the files of its folder.

    Args:
        path: Its file.

    Raises:
        ConfigError: If there is no such file, or far too many lie beside it.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", path=path, hint="alipes init writes a first app")
    root, into = path.absolute().parent, APP_FOLDER.lstrip("/")
    hidden = {one.name for one in root.rglob(".*")} | {one.parent.name for one in root.rglob(_ENVIRONMENT)}
    found: Contents = {into: folder()}
    for place, source in tree(root, without=_UNUSED | hidden):
        if len(found) > _MOST_FILES:
            raise ConfigError(
                f"{root} holds more than {_MOST_FILES} files, which all would go into the image",
                path=root,
                hint=f"put {path.name} into a folder of its own, with what it needs",
            )
        found[f"{into}/{place}"] = file(source)
    return [path.name], found

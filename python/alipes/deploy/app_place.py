"""An app in the place of a repository: `app.py` of this machine, with what lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.paths import kind_of
from alipes.deploy.image.contents import folder
from alipes.deploy.image.layout import holds_image
from alipes.deploy.image.selection import Selection, select
from alipes.errors import ConfigError

__all__ = ["APP_FOLDER", "app_file", "find_app"]

APP_FOLDER: Final = "/app"
"""Where the folder of an app lies in an image, or is mounted."""

_UNUSED: Final = frozenset({"node_modules", "venv"})
"""Folders beside an app that are none of it; nor is what begins with a dot."""

_ENVIRONMENT: Final = "pyvenv.cfg"
"""The file by which an environment of Python is known."""

_MOST_FILES: Final = 10_000
"""More belong to something else than an app: a home folder, a data set."""


def app_file(repository: str) -> Path | None:
    """The file of an app; None for a repository."""
    path = Path(repository)
    return path if "://" not in repository and path.suffix == ".py" and not path.is_dir() else None


def find_app(path: Path) -> Selection:
    """An app with the files of its folder, apart from those that hold a secret.

    Args:
        path: Its file.

    Raises:
        ConfigError: If there is no such file, or far too many lie beside it.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", path=path, hint="alipes init writes a first app")
    root, into = path.absolute().parent, APP_FOLDER.lstrip("/")
    found, left_out = select(root, into, unused=_is_unused, most=_MOST_FILES + 1)
    if len(found) > _MOST_FILES:
        raise ConfigError(
            f"{root} holds more than {_MOST_FILES} files, which all would go into the image",
            path=root,
            hint=f"put {path.name} into a folder of its own, with what it needs",
        )
    return Selection([path.name], {into: folder()} | found, left_out)


def _is_unused(path: Path) -> bool:
    return (
        path.name.startswith(".") or path.name in _UNUSED or kind_of(path / _ENVIRONMENT) == "file" or holds_image(path)
    )

"""The Dockerfile for those who build images as usual: on a base image, with pip."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import alipes
from alipes.deploy.app_place import APP_FOLDER, app_file
from alipes.deploy.image.settings import COMMAND, MODELS, PORTS, STOP_SIGNAL, USER

__all__ = ["dockerfile"]

_HEALTH_CHECK: Final = "import urllib.request as u; u.urlopen('http://localhost:8000/v2/health/ready', timeout=4)"
"""What asks a server whether it is ready: slim images have Python, and no curl."""


_REQUIREMENTS: Final = "requirements.txt"
"""What names the packages of an app."""

_NOT_COPIED: Final = "# A file .dockerignore keeps files out: name private keys, .env and .git in it.\n"


def dockerfile(repository: str | None = None) -> str:
    """A Dockerfile with this release of alipes on this release of Python.

    Args:
        repository: The folder of models, or the file of an app, as seen from where the image is built; None for a
            folder that is mounted.
    """
    app = None if repository is None else app_file(repository)
    copied = _app(app) if app else f'COPY ["{repository.rstrip("/")}/", "{MODELS}/"]\n\n' if repository else ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    served = f"{APP_FOLDER}/{app.name}" if app else MODELS
    entrypoint = ", ".join(f'"{word}"' for word in (*COMMAND, served))
    return f"""\
FROM python:{python}-slim

RUN pip install --no-cache-dir alipes=={alipes.__version__} \\
    && useradd --system --uid {USER} --no-create-home alipes

{copied}USER {USER}
EXPOSE {" ".join(map(str, PORTS))}
STOPSIGNAL {STOP_SIGNAL}
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \\
    CMD ["python", "-c", "{_HEALTH_CHECK}"]

ENTRYPOINT [{entrypoint}]
"""


def _app(file: Path) -> str:
    """What brings an app into an image: the packages that it names, then its folder, which changes more often."""
    beside = file.parent.as_posix()
    packages = ""
    if (file.parent / _REQUIREMENTS).is_file():
        packages = (
            f'COPY ["{beside}/{_REQUIREMENTS}", "/tmp/"]\nRUN pip install --no-cache-dir -r /tmp/{_REQUIREMENTS}\n'
        )
    return f'{packages}{_NOT_COPIED}COPY ["{beside}/", "{APP_FOLDER}/"]\n\n'

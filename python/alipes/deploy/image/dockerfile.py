"""The Dockerfile for those who build images as usual: on a base image, with pip."""

from __future__ import annotations

import sys
from typing import Final

import alipes
from alipes.deploy.image.settings import ENTRYPOINT, MODELS, PORTS, STOP_SIGNAL, USER

__all__ = ["dockerfile"]

_HEALTH_CHECK: Final = "import urllib.request as u; u.urlopen('http://localhost:8000/v2/health/ready', timeout=4)"
"""What asks a server whether it is ready: slim images have Python, and no curl."""


def dockerfile(repository: str | None = None) -> str:
    """A Dockerfile with this release of alipes on this release of Python.

    Args:
        repository: The folder of models, as seen from where the image is built; None for one that is mounted.
    """
    copied = f'COPY ["{repository.rstrip("/")}/", "{MODELS}/"]\n\n' if repository is not None else ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    entrypoint = ", ".join(f'"{word}"' for word in ENTRYPOINT)
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

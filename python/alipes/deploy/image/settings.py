"""How an image runs: as whom, on which ports, by which command, and how it is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import alipes

__all__ = [
    "CERTIFICATES",
    "COMMAND",
    "DEFAULT_NAME",
    "ENVIRONMENT_FOLDER",
    "MODELS",
    "PORTS",
    "STOP_SIGNAL",
    "USER",
    "VARIABLES",
]

DEFAULT_NAME: Final = f"alipes:{alipes.__version__}"
"""What an image is called without `--name`."""

USER: Final = 10001
"""A user that no system has: above those that distributions give out."""

PORTS: Final = (8000, 8001, 8002)
"""HTTP, gRPC and metrics: the defaults of the flags."""

MODELS: Final = "/models"
"""Where models lie in an image, or are mounted."""

COMMAND: Final = ("alipes", "serve")
"""What runs, before what it serves; arguments of a container are further flags."""

STOP_SIGNAL: Final = "SIGTERM"
"""What has the server finish what is in."""

ENVIRONMENT_FOLDER: Final = "/opt/alipes"
"""Where the packages lie, as an environment of their own: Python finds them there, however it was built."""

CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"
"""The authorities that clients in an image trust: buckets, collectors of traces."""

VARIABLES: Final[Mapping[str, str]] = {
    "PATH": f"{ENVIRONMENT_FOLDER}/bin:/usr/local/bin:/usr/bin:/bin",
    # Whatever is written is written there: the root is read-only.
    "HOME": "/tmp",
    # All byte code is in the image.
    "PYTHONDONTWRITEBYTECODE": "1",
    "SSL_CERT_FILE": CERTIFICATES,
}

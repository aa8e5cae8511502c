"""What a file system needs beside Python: users, folders, certificates, and the libraries of the system."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from alipes.deploy.image.contents import Contents, file, folder, link, text
from alipes.deploy.image.interpreter import PYTHON, RELEASE
from alipes.deploy.image.libraries import Libraries
from alipes.deploy.image.settings import CERTIFICATES, ENVIRONMENT_FOLDER, MODELS, USER
from alipes.errors import ConfigError

__all__ = ["environment", "system"]

_CERTIFICATES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions have the authorities that they trust, in one file."""

_USERS: Final = f"root:x:0:0:root:/tmp:/sbin/nologin\nalipes:x:{USER}:{USER}:alipes:/tmp:/sbin/nologin\n"
_GROUPS: Final = f"root:x:0:\nalipes:x:{USER}:\n"
_NAMES: Final = "passwd: files\ngroup: files\nhosts: files dns\n"

_PROGRAM: Final = """\
#!/{folder}/bin/python
import sys

from alipes.cli import main

sys.exit(main())
"""


def system(libraries: Libraries) -> Contents:
    """Users, folders and certificates, and the libraries in the folder where the loader searches by itself.

    Raises:
        ConfigError: If there are no certificates here.
    """
    path, loader = libraries.loader
    into = str(libraries.folder).lstrip("/")
    found: Contents = {f"{into}/{name}": file(source, runs=False) for name, source in libraries.files.items()}
    return found | {
        path: file(loader, runs=True),
        "etc/passwd": text(_USERS),
        "etc/group": text(_GROUPS),
        "etc/nsswitch.conf": text(_NAMES),
        CERTIFICATES.lstrip("/"): file(_certificates(), runs=False),
        MODELS.lstrip("/"): folder(),
        # Anybody may write there, and remove what is their own.
        "tmp": folder(0o1777),
    }


def environment() -> Contents:
    """The environment that packages lie in, as `python -m venv` makes it, and the program `alipes`."""
    root = ENVIRONMENT_FOLDER.lstrip("/")
    home = f"/{PYTHON.rpartition('/')[0]}"
    return {
        f"{root}/pyvenv.cfg": text(f"home = {home}\ninclude-system-site-packages = false\nversion = {RELEASE}\n"),
        f"{root}/bin/python": link(f"/{PYTHON}"),
        f"{root}/bin/python3": link("python"),
        f"{root}/bin/alipes": text(_PROGRAM.format(folder=root), mode=0o755),
    }


def _certificates() -> Path:
    for path in (*_CERTIFICATES, ssl.get_default_verify_paths().cafile):
        if path and Path(path).is_file():
            return Path(path)
    raise ConfigError(f"there are no certificates in {_CERTIFICATES[0]}", hint="install the package ca-certificates")

"""What of a folder goes into an image, and what stays out of it: files that hold a secret among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from alipes.config.paths import kind_of
from alipes.deploy.image.contents import Contents, file, tree

__all__ = ["CACHES", "Selection", "holds_private_key", "is_secret", "select"]

CACHES: Final = frozenset({"__pycache__", ".ipynb_checkpoints"})
"""Folders that programs write beside files and make again; nobody misses them, so no message names them."""

_SECRETS: Final = frozenset({".env", ".git"})
"""Names of what holds passwords: variables of an environment, and the history and remotes of a repository of Git."""

_PRIVATE_KEY: Final = re.compile(rb"^-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----", re.MULTILINE)
_PEM: Final = b"-----BEGIN "
_PEM_NAMES: Final = frozenset({".pem", ".key"})
_FIRST_BYTES: Final = 64
_MOST_BYTES: Final = 1 << 16
"""Of a file, in which a private key is looked for: chains of certificates in front of one are shorter."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a folder goes into an image.

    Attributes:
        names: The models of the folder, or the file of the app.
        contents: The files that go in.
        left_out: Files and folders that stay out, by their path below the folder, each with the reason where it has
            one; caches are not named.
    """

    names: list[str]
    contents: Contents
    left_out: tuple[str, ...]


def select(
    root: Path, into: str, *, unused: Callable[[Path], bool], most: int | None = None
) -> tuple[Contents, tuple[str, ...]]:
    """The files below a folder without those that hold a secret, and what stays out.

    Args:
        root: The folder.
        into: Where they lie in the image, without the slash in front.
        unused: Whether a file or folder is none of what is wanted.
        most: So many files are enough: a folder with more is not listed to its end.

    Raises:
        ConfigError: If a folder cannot be listed, a link leads nowhere, or links lead in a circle.
    """
    left_out: list[str] = []

    def stays_out(path: Path) -> bool:
        if path.name in CACHES:
            return True
        is_key = holds_private_key(path)
        if is_key or is_secret(path) or unused(path):
            left_out.append(f"{path.relative_to(root)}{' (a private key)' * is_key}")
            return True
        return False

    found = {f"{into}/{path}": file(source) for path, source in islice(tree(root, skips=stays_out), most)}
    return found, tuple(left_out)


def is_secret(path: Path) -> bool:
    """Whether a name is that of a file or folder with passwords."""
    return path.name in _SECRETS or path.name.startswith(".env.")


def holds_private_key(path: Path) -> bool:
    """Whether a file is a private key, or certificates with one.

    Source: RFC 7468, "Textual Encodings of PKIX, PKCS, and CMS Structures"; OpenSSH writes its keys alike.
    """
    if kind_of(path) != "file":
        return False
    try:
        with path.open("rb") as opened:
            start = opened.read(_FIRST_BYTES)
            if not start.lstrip().startswith(_PEM) and path.suffix not in _PEM_NAMES:
                return False
            return _PRIVATE_KEY.search(start + opened.read(_MOST_BYTES)) is not None
    except OSError:
        return False  # copying the file reports the error

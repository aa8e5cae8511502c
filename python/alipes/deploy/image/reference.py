"""What an image is called, and in which registry.

Source: OCI distribution specification 1.1, "Pulling manifests"; the names' first part as Docker reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from alipes.errors import ConfigError

__all__ = ["Name", "Reference"]

_PATH: Final = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
_TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_HOST: Final = re.compile(r"([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?")
_LOCAL: Final = "localhost"
_LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Name:
    """What an image is called.

    Attributes:
        path: Its name, with the registry in front where one is named.
        tag: Which of that name.
    """

    path: str
    tag: str

    @property
    def full(self) -> str:
        """Both, with the registry that engines give to what they made themselves."""
        here = self.path if _has_host(self.path) else f"{_LOCAL}/{self.path}"
        return f"{here}:{self.tag}"

    @property
    def short(self) -> str:
        """The last part of its name, for a file."""
        return self.path.rpartition("/")[2]

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads `NAME[:TAG]`.

        Raises:
            ConfigError: If it is no name of an image.
        """
        path, tag = _split(text)
        host, slash, rest = path.partition("/") if _has_host(path) else ("", "", path)
        _check(text, rest, tag, not slash or _HOST.fullmatch(host) is not None)
        return cls(path, tag)


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an image is pushed to.

    Attributes:
        host: The registry, with its port where one is named.
        path: The name there.
        tag: Which of that name.
    """

    host: str
    path: str
    tag: str

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.host}/{self.path}:{self.tag}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads `HOST[:PORT]/NAME[:TAG]`.

        Raises:
            ConfigError: If it names no registry, or is no name of an image.
        """
        path, tag = _split(text)
        if not _has_host(path):
            raise ConfigError(f"'{text}' names no registry", hint=f"write registry.example.com/{text}")
        host, _, name = path.partition("/")
        _check(text, name, tag, _HOST.fullmatch(host) is not None)
        return cls(host, name, tag)


def _split(text: str) -> tuple[str, str]:
    path, colon, tag = text.rpartition(":")
    return (path, tag) if colon and "/" not in tag else (text, _LATEST)


def _has_host(path: str) -> bool:
    host, slash, _ = path.partition("/")
    return bool(slash) and (host == _LOCAL or "." in host or ":" in host)


def _check(text: str, path: str, tag: str, host_fits: bool) -> None:
    if not host_fits:
        raise ConfigError(f"'{text}' names no registry that can be asked", hint="write HOST:PORT/NAME:TAG")
    if not _PATH.fullmatch(path):
        raise ConfigError(
            f"'{text}' is no name of an image",
            hint="small letters, digits, and . _ - / between them, as in team/models:1",
        )
    if not _TAG.fullmatch(tag):
        raise ConfigError(f"'{tag}' is no tag of an image", hint="letters, digits, and _ . - behind the first")

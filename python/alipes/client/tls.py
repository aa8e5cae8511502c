"""The settings of a client for encrypted connections."""

from __future__ import annotations

import os
from dataclasses import dataclass

from alipes._core import ClientTls
from alipes.errors import ConfigError

__all__ = ["Tls"]

Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Tls:
    """The roots that a client trusts, and its own certificate. All files are PEM; they are read when a client is made.

    Attributes:
        roots: The certificates of the authorities that are trusted; those that the system trusts by default.
        certificate: The client's own certificate, for servers that ask for one.
        key: The key to it, without a password.
        server_name: The name that the server's certificate bears, where it is not the one in the address.
    """

    roots: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        """Checks that certificate and key come together.

        Raises:
            ConfigError: If one of them is missing.
        """
        if (self.certificate is None) != (self.key is None):
            present, missing = ("certificate", "key") if self.key is None else ("key", "certificate")
            raise ConfigError(f"Tls has a {present} without its {missing}", key=missing, hint=f"give the {missing} too")

    def read(self) -> ClientTls:
        """The files' content.

        Raises:
            ConfigError: If a file is absent or does not hold what it should.
        """
        roots, certificate, key = (
            None if path is None else os.fspath(path) for path in (self.roots, self.certificate, self.key)
        )
        return ClientTls(roots, certificate, key, self.server_name)

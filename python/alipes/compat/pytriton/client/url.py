"""The address of a server as PyTriton's clients take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlparse

from alipes.compat.pytriton.client.exceptions import PyTritonClientInvalidUrlError
from alipes.compat.pytriton.constants import DEFAULT_GRPC_PORT, DEFAULT_HTTP_PORT

__all__ = ["TritonUrl"]

_PORTS: Final = {"grpc": DEFAULT_GRPC_PORT, "http": DEFAULT_HTTP_PORT}


@dataclass
class TritonUrl:
    """An address: `grpc://host:port`, `http://host:port`; HTTP and the protocol's own port where they are left out."""

    scheme: str
    hostname: str
    port: int

    @classmethod
    def from_url(cls, url: Any) -> Self:
        """Reads an address.

        Raises:
            PyTritonClientInvalidUrlError: If it is no text, or none of that form.
        """
        if not isinstance(url, str):
            raise PyTritonClientInvalidUrlError(f"Invalid url {url}. Url must be a string.")
        try:
            parts = urlparse(url)
            if not parts.netloc and "://" not in url:
                parts = urlparse(f"http://{url}")  # `localhost:8000` has no scheme, whatever stands before its colon
            scheme = parts.scheme.lower()
            if scheme not in _PORTS:
                raise ValueError(f"Invalid scheme {scheme}. Only grpc and http are supported.")
            if not parts.hostname:
                raise ValueError("It names no host.")
            port = parts.port or _PORTS[scheme]
        except ValueError as error:
            raise PyTritonClientInvalidUrlError(f"Invalid url {url}") from error
        return cls(scheme, parts.hostname, port)

    @property
    def with_scheme(self) -> str:
        """The address with its scheme."""
        return f"{self.scheme}://{self.without_scheme}"

    @property
    def without_scheme(self) -> str:
        """Host and port."""
        return f"{self.hostname}:{self.port}"

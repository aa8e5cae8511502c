"""The header that carries a server's access token, by protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["TRITON_ACCESS_HEADER", "create_auth_headers", "extract_access_token_from_headers"]

TRITON_ACCESS_HEADER: Final = "triton-access-token"
_HEADERS: Final = {
    "http": TRITON_ACCESS_HEADER,
    # What Triton puts in front of the names of a restricted gRPC protocol.
    "grpc": f"triton-grpc-protocol-{TRITON_ACCESS_HEADER}",
}


def extract_access_token_from_headers(headers: Mapping[str, str] | None) -> str | None:
    """The token in headers of either protocol; None where there is none.

    Raises:
        ValueError: If the headers have two that differ.
    """
    over_http, over_grpc = ((headers or {}).get(_HEADERS[protocol]) for protocol in ("http", "grpc"))
    if over_http is not None and over_grpc is not None and over_http != over_grpc:
        raise ValueError(
            f"Conflicting authentication headers found: '{_HEADERS['http']}' and '{_HEADERS['grpc']}' contain "
            "different tokens. Please use consistent tokens."
        )
    return over_http or over_grpc


def create_auth_headers(access_token: str | None, protocol: str) -> dict[str, str]:
    """The header of a token.

    Raises:
        ValueError: If there is no token, or no such protocol.
    """
    if not access_token:
        raise ValueError("access_token cannot be None or empty")
    header = _HEADERS.get(protocol.lower())
    if header is None:
        raise ValueError(f"Invalid protocol '{protocol.lower()}'. Must be 'http' or 'grpc'")
    return {header: access_token}

"""Addresses of stores: what is fetched as a whole may have any form, so it is a store however it was named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["is_fetched", "stores_of"]

_FETCHED: Final = (
    "http",
    "https",
    "hf",
    "oci",
    "pvc",
    # Refused by name, with what to do.
    "azfileshare",
    "git",
    "hdfs",
    "modelscope",
    "oci+fetch",
    "oci+native",
    "webhdfs",
)


def is_fetched(address: str) -> bool:
    """Whether a repository's address is that of a store. Buckets are repositories, which are followed."""
    scheme, separator, _ = address.partition("://")
    return bool(separator) and scheme in _FETCHED


def stores_of(paths: Iterable[str], stores: Iterable[str]) -> tuple[str, ...]:
    """The stores among everything that a server was given, each once."""
    return tuple(dict.fromkeys((*stores, *filter(is_fetched, paths))))

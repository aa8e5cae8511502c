"""Flags of the keys that clients show."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["ACCESS"]

ACCESS: Final[tuple[Flag, ...]] = (
    Flag(
        "api-key",
        "list",
        (),
        "A key that clients must show over HTTP, gRPC and for metrics. It stands in `Authorization: Bearer KEY` or "
        "`X-Api-Key: KEY`; any of several will do. Other users of the machine see a command line: the variable and "
        "--api-key-file hide the key. Not a flag of Triton.",
        common=True,
    ),
    Flag(
        "api-key-file",
        "str",
        "",
        "A file of keys, one on each line, beside those of --api-key. A change of the file counts within a second or "
        "two. Not a flag of Triton.",
        path="file",
    ),
    Flag(
        "api-key-open",
        "list",
        (),
        "Groups of requests that need no key: those of --http-restricted-api, and `metrics`; `none` for no group. "
        "Left out, `health`, so that probes need no key. Not a flag of Triton.",
    ),
)

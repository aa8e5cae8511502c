"""Flags of the HTTP endpoint."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.encryption import NOT_TRITONS, encryption
from alipes.config.flags.flag import MAX_BYTES, MAX_PORT, UNIX, Flag

__all__ = ["HTTP"]

HTTP: Final[tuple[Flag, ...]] = (
    Flag("allow-http", "bool", True, "Offer HTTP.", option="http.enabled"),
    Flag(
        "http-address",
        "str",
        "0.0.0.0",
        f"Address of the HTTP endpoint; {UNIX}.",
        option="http.address",
    ),
    Flag(
        "http-port",
        "int",
        8000,
        "Port of the HTTP endpoint; 0 asks the system for one.",
        high=MAX_PORT,
        option="http.port",
        common=True,
    ),
    Flag(
        "reuse-http-port",
        "bool",
        False,
        "Share the HTTP port with other processes that do so too; the system deals connections out to them.",
        option="http.reuse_port",
    ),
    Flag(
        "http-thread-count",
        "int",
        0,
        "Network threads, HTTP and gRPC together; 0 takes half the cores, at least two. "
        "Triton's default is 8, for HTTP alone.",
        option="network_threads",
    ),
    Flag(
        "http-header-forward-pattern",
        "str",
        "",
        "Headers to hand to models as parameters: a regular expression that matches anywhere in a name.",
        option="http_header_forward_pattern",
    ),
    Flag(
        "http-max-input-size",
        "int",
        1 << 26,
        "Largest JSON body, or raw input, in bytes.",
        low=1,
        option="http_max_input_bytes",
        high=MAX_BYTES,
        common=True,
    ),
    Flag(
        "http-restricted-api",
        "list",
        (),
        "Groups of requests that need a header, `<api,...>:<key>=<value>`.",
    ),
    Flag(
        "cors-origins",
        "list",
        (),
        "Origins whose pages may send requests that change something, and read answers, in a browser, such as "
        "`https://app.example.org`; `*` for every one. Without it none may. Not a flag of Triton.",
    ),
    Flag(
        "allowed-hosts",
        "list",
        (),
        "Names that requests over HTTP may have in `Host`, beside addresses and names that are not public; `*` for "
        "every one. Given, any other is 403; without it only a change on this machine is looked at. Not a flag "
        "of Triton.",
    ),
    *encryption("http", "HTTP", note=NOT_TRITONS),
)

"""Flags on what connections may take, whichever endpoint they came to."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["CONNECTIONS"]

CONNECTIONS: Final[tuple[Flag, ...]] = (
    Flag(
        "max-connections",
        "int",
        0,
        "Connections of all clients together; further ones are told to come later. 0 takes what fits into a quarter of "
        "the memory, at 128 KiB each, and into three quarters of the descriptors that the process may open further. "
        "Connections to the metrics endpoint do not count. Not a flag of Triton.",
        option="connections.max_connections",
    ),
    Flag(
        "max-header-bytes",
        "int",
        65536,
        "Largest head of a request in bytes: line and headers. Not a flag of Triton.",
        low=1024,
        high=1 << 20,
        option="connections.max_header_bytes",
    ),
    Flag(
        "max-header-count",
        "int",
        100,
        "Most headers of a request. Not a flag of Triton.",
        low=10,
        high=10_000,
        option="connections.max_header_count",
    ),
    Flag(
        "header-timeout-secs",
        "seconds",
        30.0,
        "Longest time until a new connection is set up and has sent its first request's head, and, later, until a "
        "head of which something has come is whole; 0 sets no limit. Not a flag of Triton.",
        option="connections.header_timeout_s",
    ),
    Flag(
        "idle-timeout-secs",
        "seconds",
        3600.0,
        "Longest time that a connection is kept without a request; 0 sets no limit. Not a flag of Triton.",
        option="connections.idle_timeout_s",
    ),
    Flag(
        "stall-timeout-secs",
        "seconds",
        60.0,
        "Longest time in which less than 4096 bytes of a body come, or nothing of an answer is taken; 0 sets no "
        "limit. Not a flag of Triton.",
        option="connections.stall_timeout_s",
    ),
    Flag(
        "http2-max-control-frames",
        "int",
        1000,
        "Frames that bring nothing, a second, that one HTTP/2 connection may send on average, in bursts of five "
        "seconds' worth: calls withdrawn before they were served, and pings, settings, window updates and others that "
        "nothing gave rise to; 0 sets no limit. Not a flag of Triton.",
        option="connections.http2_control_frames_per_s",
    ),
    Flag(
        "trusted-proxies",
        "list",
        (),
        "Addresses and networks, `<network>[,<network>...]`, that answer for no flood: after one, the connections of "
        "any other address share one budget of such frames for a minute. Not a flag of Triton.",
    ),
    Flag(
        "ssl-reload-secs",
        "seconds",
        10.0,
        "Seconds between two looks at certificates and keys, which are read again when their files change; 0 looks "
        "at them once. Not a flag of Triton.",
        option="connections.tls_reload_s",
    ),
)

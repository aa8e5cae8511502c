"""Flags of the gRPC endpoint."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.encryption import encryption
from alipes.config.flags.flag import MAX_INT, MAX_PORT, UNIX, Flag

__all__ = ["GRPC"]

_NO_POOL: Final = "requests run on the network threads and need no pool of their own"

GRPC: Final[tuple[Flag, ...]] = (
    Flag("allow-grpc", "bool", True, "Offer gRPC.", option="grpc.enabled", common=True),
    Flag(
        "grpc-address",
        "str",
        "0.0.0.0",
        f"Address of the gRPC endpoint; {UNIX}.",
        option="grpc.address",
    ),
    Flag(
        "grpc-port",
        "int",
        8001,
        "Port of the gRPC endpoint; 0 asks the system for one.",
        high=MAX_PORT,
        option="grpc.port",
        common=True,
    ),
    Flag(
        "reuse-grpc-port",
        "bool",
        False,
        "Share the gRPC port with other processes that do so too; the system deals connections out to them.",
        option="grpc.reuse_port",
    ),
    Flag(
        "grpc-header-forward-pattern",
        "str",
        "",
        "Metadata to hand to models as parameters: a regular expression that matches anywhere in a key.",
        option="grpc_header_forward_pattern",
    ),
    Flag("grpc-infer-thread-count", "int", 2, "Threads that handle inference calls.", low=2, ignored=_NO_POOL),
    Flag("grpc-infer-allocation-pool-size", "int", 8, "Request objects kept for reuse.", ignored=_NO_POOL),
    Flag("grpc-max-response-pool-size", "int", MAX_INT, "Response objects kept for reuse.", ignored=_NO_POOL),
    Flag(
        "grpc-infer-response-compression-level",
        "choice",
        "none",
        "Work that is spent on compressing answers, for clients that read gzip or deflate.",
        option="grpc_compression_level",
        choices=("none", "low", "medium", "high"),
    ),
    Flag(
        "grpc-max-request-bytes",
        "int",
        MAX_INT,
        "Largest request message, in bytes.",
        low=1,
        option="grpc_max_request_bytes",
    ),
    Flag(
        "grpc-max-expanded-bytes",
        "int",
        1 << 26,
        "Largest request message that came compressed, in bytes, once it is expanded.",
        low=1,
        option="grpc_max_expanded_bytes",
    ),
    *encryption("grpc", "gRPC"),
    Flag(
        "grpc-keepalive-time",
        "int",
        7200000,
        "Milliseconds between two pings of the server; 0, and the default or more, leave that to TCP.",
        option="keepalive.time_ms",
    ),
    Flag(
        "grpc-keepalive-timeout",
        "int",
        20000,
        "Milliseconds to wait for a ping's answer before a connection is given up.",
        low=1,
        option="keepalive.timeout_ms",
    ),
    Flag(
        "grpc-keepalive-permit-without-calls",
        "bool",
        False,
        "Let clients without calls ping as often as those with; otherwise every two hours.",
        option="keepalive.permit_without_calls",
    ),
    Flag(
        "grpc-http2-max-pings-without-data",
        "int",
        2,
        "Pings sent without data between them.",
        ignored="the server pings as often as --grpc-keepalive-time says",
    ),
    Flag(
        "grpc-http2-min-recv-ping-interval-without-data",
        "int",
        300000,
        "Milliseconds that have to pass between two pings of a client while nothing is sent to it.",
        option="keepalive.min_recv_ping_interval_ms",
    ),
    Flag(
        "grpc-http2-max-ping-strikes",
        "int",
        2,
        "Early pings after which a client is told `too_many_pings` and disconnected; 0 takes any number.",
        option="keepalive.max_ping_strikes",
    ),
    Flag(
        "grpc-max-connection-age",
        "int",
        0,
        "Milliseconds until a connection is asked to go after its calls; 0 asks none.",
        option="keepalive.max_connection_age_ms",
    ),
    Flag(
        "grpc-max-connection-age-grace",
        "int",
        0,
        "Milliseconds after which a connection that was asked to go is closed; 0 closes none.",
        option="keepalive.max_connection_age_grace_ms",
    ),
    Flag(
        "grpc-restricted-protocol",
        "list",
        (),
        "Groups of calls that need metadata, `<protocol,...>:<key>=<value>`; "
        "the metadata is called `triton-grpc-protocol-<key>`.",
    ),
)

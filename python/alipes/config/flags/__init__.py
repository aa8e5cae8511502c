"""The one table of the server's flags: every flag of Triton's server, and what it does here.

The parser, the option classes, the environment names and the reference page all read this table; nothing else lists
flags.
Source: Triton's command line, defaults included; where a default differs here, the row's help says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from alipes.config.flags.access import ACCESS
from alipes.config.flags.connections import CONNECTIONS
from alipes.config.flags.flag import MAX_BYTES, Flag, Kind, Status, Value
from alipes.config.flags.graph import GRAPH
from alipes.config.flags.grpc import GRPC
from alipes.config.flags.http import HTTP
from alipes.config.flags.models import MODELS
from alipes.config.flags.observation import LOG, METRICS, TRACING
from alipes.config.flags.own import OWN
from alipes.config.flags.payloads import PAYLOADS
from alipes.config.flags.platforms import PLATFORMS
from alipes.config.flags.predictor import PREDICTOR
from alipes.config.flags.resources import BACKENDS, DEVICES, PATHS, RESPONSE_CACHE

__all__ = [
    "FLAGS",
    "OPTION_FLAGS",
    "OWN_GROUP",
    "SERVE_FLAGS",
    "Flag",
    "Kind",
    "Status",
    "Value",
    "environment_name",
    "find",
    "find_for_serve",
]

_SERVER: Final[tuple[Flag, ...]] = (
    Flag("id", "str", "triton", "Name that the server metadata gives.", option="id"),
    Flag(
        "triton-release",
        "choice",
        "2.73",
        "The release of Triton that is followed where releases differ. Not a flag of Triton.",
        choices=("2.51", "2.73"),
        option="triton_release",
    ),
    Flag(
        "max-inflight-bytes",
        "int",
        0,
        "Bytes that the requests and answers in flight may take; 0 takes a quarter of the memory. "
        "Not a flag of Triton, which sets no limit.",
        option="inflight_bytes",
        high=MAX_BYTES,
    ),
    Flag(
        "exit-timeout-secs",
        "int",
        30,
        "Seconds to finish what is in before leaving. What is not finished then is answered with an error.",
        option="exit_timeout_s",
        common=True,
    ),
    Flag(
        "exit-grace-secs",
        "seconds",
        0.5,
        "Longest time from the signal to stop in which new requests are still served, so that clients are told with "
        "an answer that their connection ends. It ends at once when no client is connected. Not a flag of Triton.",
        option="connections.exit_grace_s",
    ),
    Flag(
        "idle-exit",
        "seconds",
        0.0,
        "Seconds without a request of any client, over HTTP or gRPC, after which the server ends, with exit code 0. "
        "0 never ends it. Where another process holds the listening sockets, as alipes activate and systemd do, no "
        "request is lost, and the next one starts the server again. Not a flag of Triton.",
        option="idle_exit_s",
    ),
)

# Headings of the usage and the reference page, in their order.
_TABLE: Final[dict[str, tuple[Flag, ...]]] = {
    "Models": MODELS,
    "Server": _SERVER,
    "Access": ACCESS,
    "HTTP": HTTP,
    "gRPC": GRPC,
    "Metrics": METRICS,
    "Connections": CONNECTIONS,
    "Log": LOG,
    "Backends": BACKENDS,
    "Devices and memory": DEVICES,
    "Ways of execution": PATHS,
    "Response cache": RESPONSE_CACHE,
    "Tracing": TRACING,
    "Payload log": PAYLOADS,
    "Graph": GRAPH,
    "Cloud platforms": PLATFORMS,
}

FLAGS: Final = tuple(replace(flag, group=group) for group, flags in _TABLE.items() for flag in flags)
"""Every flag of `tritonserver`, in the order of the reference page."""

OWN_GROUP: Final = "Everyday"
"""Heading of the flags of `alipes serve` alone."""

_PREDICTOR_GROUP: Final = "Predictor behind an app"

SERVE_FLAGS: Final = (
    *(replace(flag, group=OWN_GROUP) for flag in OWN),
    *(replace(flag, group=_PREDICTOR_GROUP) for flag in PREDICTOR),
    *FLAGS,
)
"""Every flag of `alipes serve`: those, and in front of them its own."""

OPTION_FLAGS: Final = tuple(flag for flag in SERVE_FLAGS if flag.option or flag.group != OWN_GROUP)
"""Every flag whose value is read: all but those that stand for others."""

_BY_NAME: Final = {flag.name: flag for flag in FLAGS}
_FOR_SERVE: Final = {flag.name: flag for flag in SERVE_FLAGS}


def find(name: str) -> Flag | None:
    """The row of a flag, given without dashes; None where there is none."""
    return _BY_NAME.get(name)


def find_for_serve(name: str) -> Flag | None:
    """The row of a flag of `alipes serve`, given without dashes; None where there is none."""
    return _FOR_SERVE.get(name)


def environment_name(flag: Flag) -> str:
    """The environment variable that stands for a flag, for example `ALIPES_HTTP_PORT`."""
    return "ALIPES_" + flag.name.upper().replace("-", "_")

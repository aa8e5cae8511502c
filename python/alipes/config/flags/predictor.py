"""Flags of `alipes serve` on the predictor behind an app, in the words of the KServe SDK.

KServe starts a transformer and an explainer with `--predictor_host`, and gives them no other of these.
"""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["PREDICTOR"]

_MOST_RETRIES: Final = 100

PREDICTOR: Final[tuple[Flag, ...]] = (
    Flag(
        "predictor-host",
        "str",
        "",
        "Host of the predictor that `alipes.Predictor` calls, with a port unless that is 80, or 443 where encrypted. "
        "Left out, a handle without an address calls models of this server.",
        option="predictor.host",
    ),
    Flag(
        "predictor-protocol",
        "choice",
        "v2",
        "How it is asked: `v2` is HTTP with binary tensors, `grpc-v2` is gRPC.",
        choices=("v2", "grpc-v2"),
        option="predictor.protocol",
    ),
    Flag(
        "predictor-use-ssl",
        "bool",
        False,
        "Encrypt the connections to the predictor.",
        option="predictor.use_ssl",
    ),
    Flag(
        "predictor-request-timeout-seconds",
        "seconds",
        0.0,
        "Longest time of a call of the predictor, with all attempts. 0 leaves it to the app, or else 60.",
        option="predictor.timeout_s",
    ),
    Flag(
        "predictor-request-retries",
        "int",
        None,
        "Most further attempts at a call of the predictor. Left out, the app's number, or else 2.",
        option="predictor.retries",
        high=_MOST_RETRIES,
    ),
    Flag(
        "enable-predictor-health-check",
        "bool",
        False,
        "Models of an app that calls a predictor are ready only while the predictor is.",
        option="predictor.health_check",
    ),
)

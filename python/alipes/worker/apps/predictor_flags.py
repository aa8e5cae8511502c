"""What the server's flags say of the predictor behind its apps, and the handles of this process that follow them.

A handle is made when the app is imported, which is before the worker knows its server's flags. So it reads them with
its first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from weakref import WeakSet

__all__ = ["HANDLES", "Handle", "PredictorFlags", "predictor_flags", "predictors_are_ready", "set_predictor_flags"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorFlags:
    """The predictor behind the apps of a server.

    Attributes:
        host: Host, with a port where that is not the usual one; empty for none.
        protocol: `v2` for HTTP with binary tensors, or `grpc-v2`.
        use_ssl: Whether connections to it are encrypted.
        timeout_s: Longest time of a call, in seconds; 0 leaves it to the app.
        retries: Most further attempts at a call; None leaves it to the app.
        health_check: Whether the models of an app are ready only while the predictor is.
        model: Name of the predictor's model, where the app names none.
    """

    host: str = ""
    protocol: str = "v2"
    use_ssl: bool = False
    timeout_s: float = 0.0
    retries: int | None = None
    health_check: bool = False
    model: str = ""


class Handle(Protocol):
    """A handle to a predictor."""

    def is_ready(self) -> bool:
        """Whether it can be called."""


HANDLES: Final[WeakSet[Handle]] = WeakSet()
"""The handles of this process that follow the flags, as long as the app has them."""

_flags: Final = [PredictorFlags()]


def set_predictor_flags(document: Mapping[str, Any]) -> None:
    """Takes the flags of this process's server, as the document of a version has them."""
    _flags[:] = [PredictorFlags(**document)]


def predictor_flags() -> PredictorFlags:
    """The flags of this process's server; without a server, those that say nothing."""
    return _flags[0]


def predictors_are_ready() -> bool:
    """Whether all predictors that this process has a handle to can be called."""
    return all(handle.is_ready() for handle in list(HANDLES))

"""What a scaler sees of its service each second, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["TICK_S", "Scaler", "ServiceState"]

TICK_S: Final = 2
"""Seconds between two decisions, as Knative has them."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service during one second.

    Attributes:
        arrived: Requests that came in this second.
        in_service: Requests that are executed or wait, as a mean over the second.
        waiting: Requests that no replica has begun, at the end of the second.
        ready: Replicas that serve.
        starting: Replicas that start.
    """

    arrived: float
    in_service: float
    waiting: float
    ready: int
    starting: int

    @property
    def replicas(self) -> int:
        """Replicas that serve or start."""
        return self.ready + self.starting


class Scaler(Protocol):
    """Decides how many replicas there are. It knows of time only what it is called with."""

    @property
    def first(self) -> int:
        """Replicas at the beginning."""

    def observe(self, second: int, state: ServiceState) -> None:
        """Sees a second, each after the one before."""

    def decide(self, second: int, state: ServiceState) -> int:
        """How many replicas there are to be, after this second."""

"""A server of a few lines whose model has two versions, for rollouts: it counts outcomes as they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from alipes.errors import AlipesError
from alipes.types import Shadow, TrafficSplit

__all__ = ["Several", "Versions"]


class Versions:
    """So many requests of each version, of which so many of the second failed.

    Attributes:
        weights: Those that were set, in their order.
        shadows: The shadow beside each of them.
        versions: The versions that serve.
        error: What every call fails with; `None` where calls are answered.
        before_read: Is called before weights are read, with how often they were read before.
    """

    def __init__(self, failed: int = 0, requests: int = 50_000) -> None:
        """Has no weights."""
        self.weights: list[dict[int, int]] = []
        self.shadows: list[Shadow | int | None] = []
        self.versions: tuple[int, ...] = (1, 2)
        self.error: AlipesError | None = None
        self.before_read: Callable[[int], None] = lambda _: None
        self._failed, self._requests, self._reads = failed, requests, 0

    def servers(self) -> dict[str, Versions]:
        """This server alone."""
        return {"http://a": self}

    def traffic(self, model: str, *, timeout_s: float | None = None) -> TrafficSplit:
        """The weights that were set last."""
        self.before_read(self._reads)
        self._reads += 1
        self._check()
        weights, shadow = (self.weights[-1], self.shadows[-1]) if self.weights else ({}, None)
        return TrafficSplit(weights, None, self.versions, Shadow(shadow) if isinstance(shadow, int) else shadow)

    def set_traffic(
        self,
        model: str,
        weights: dict[int, int],
        *,
        sticky_header: str | None = None,
        shadow: Shadow | int | None = None,
        timeout_s: float | None = None,
    ) -> TrafficSplit:
        """Records the weights."""
        self._check()
        self.weights.append(dict(weights))
        self.shadows.append(shadow)
        return TrafficSplit(weights, sticky_header, self.versions)

    def traffic_outcomes(self, model: str, *, timeout_s: float | None = None) -> dict[int, dict[str, Any]]:
        """The outcomes."""

        def of(failed: int) -> dict[str, Any]:
            answered = self._requests - failed
            return {"answered": answered, "failed": failed, "latency_us": [[100, answered]], "samples": {}}

        self._check()
        return {1: of(0), 2: of(self._failed)}

    def forget(self) -> None:
        """Loses the weights, as a server that starts anew does."""
        self.weights.append({})
        self.shadows.append(None)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


class Several(Versions):
    """Several such servers, by their addresses."""

    def __init__(self, members: Mapping[str, Versions]) -> None:
        """Takes them; others may be put in their place at any time."""
        super().__init__()
        self.members = dict(members)

    def servers(self) -> dict[str, Versions]:
        """All of them."""
        return dict(self.members)

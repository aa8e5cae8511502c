"""How long what belongs to a graph may take. Source: KServe's router, whose defaults these are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Timeouts"]

_SERVER_WRITE_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds; None where the graph says nothing.

    Attributes:
        request_s: Longest time for a request of the graph.
        step_s: Longest time for a step's call over HTTP.
        read_s: Longest time in which a request has to come.
        idle_s: Longest time that a connection may be without a request.
    """

    request_s: float
    step_s: float | None = None
    read_s: float | None = None
    idle_s: float | None = None

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Timeouts:
        """The time-outs of a specification; 0 sets no limit of its own, as in Go."""
        router = spec.get("routerTimeouts") or {}

        def of(name: str) -> float | None:
            value = router.get(name)
            return float(value) if value and value > 0 else None

        write = of("serverWrite") or _SERVER_WRITE_S
        whole = spec.get("timeout") or write
        return cls(
            request_s=float(min(whole, write)),
            step_s=of("serviceClient"),
            read_s=of("serverRead"),
            idle_s=of("serverIdle"),
        )

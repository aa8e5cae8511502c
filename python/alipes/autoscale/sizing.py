"""From a measured service curve: how many requests a replica is to have at a time, and how many replicas there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from alipes.autoscale.curve import ServiceCurve
from alipes.errors import ConfigError

__all__ = ["Sizing", "size"]

_LOAD: Final = 0.7
"""The share of a replica's rate that is planned with, as Knative has it of the concurrency."""


@dataclass(frozen=True)
class Sizing:
    """Sizes of a service, each with its reason.

    Attributes:
        concurrency: Most requests that a replica works on at a time.
        aim: Requests that a replica is to have at a time.
        least: Fewest replicas; `None` where no rates are known.
        most: Most replicas.
        reasons: One sentence for each number.
    """

    concurrency: int
    aim: float
    least: int | None
    most: int | None
    reasons: tuple[str, ...]

    @property
    def utilization_percent(self) -> int:
        """The aim as a percentage of the limit, as Knative takes it."""
        return max(1, min(100, round(100 * self.aim / self.concurrency)))


def size(curve: ServiceCurve, p99_ms: float | None = None, rates: tuple[float, float] | None = None) -> Sizing:
    """The sizes that a curve leads to.

    Args:
        curve: What one replica answers.
        p99_ms: The latency that 99 of 100 requests are to keep; without one, the knee of the curve decides.
        rates: The fewest and the most requests per second that come.

    Raises:
        ConfigError: If no measured concurrency keeps the latency, or it was not measured.
    """
    concurrency, reason = _limit(curve, p99_ms)
    rate = curve.rate(concurrency)
    aimed = _LOAD * rate
    # No more than that part of the limit: where a curve is flat, its rate says little about concurrency.
    aim = max(1.0, min(curve.needed(aimed), concurrency))
    reasons = [
        f"concurrency {concurrency}: {reason}",
        f"target {aim:.3g}: with so many at a time a replica answers {aimed:,.3g} per second, {_LOAD:.0%} of its limit",
    ]
    if rates is None:
        reasons.append("bounds: as they are described; name --rates LOW,HIGH to have them computed")
        return Sizing(concurrency, aim, None, None, tuple(reasons))
    least, most = (math.ceil(one / aimed - 1e-9) for one in rates)
    most = max(most, least, 1)
    reasons += [
        f"at least {least}: {rates[0]:g} requests per second, of which a replica answers {aimed:,.3g}",
        f"at most {most}: {rates[1]:g} requests per second, of which a replica answers {aimed:,.3g}",
    ]
    return Sizing(concurrency, aim, least, most, tuple(reasons))


def _limit(curve: ServiceCurve, p99_ms: float | None) -> tuple[int, str]:
    points = list(zip(curve.concurrency, curve.rates, strict=True))
    if p99_ms is None:
        share = curve.rate(curve.knee) / curve.most
        return curve.knee, (
            f"a replica answers {curve.rate(curve.knee):,.3g} per second then, {share:.0%} of the most that was "
            "measured; more at a time bring little but latency"
        )
    if not curve.p99_ms:
        raise ConfigError("the result has no 99th percentiles: leave out --p99, or measure again with alipes tune")
    keeping = [place for place, latency in enumerate(curve.p99_ms) if latency <= p99_ms]
    if not keeping:
        fastest = min(curve.p99_ms)
        raise ConfigError(
            f"no measured concurrency keeps {p99_ms:g} ms: the fastest has a 99th percentile of {fastest:g} ms"
        )
    best = max(keeping, key=lambda place: points[place][1])
    return round(points[best][0]), (
        f"of those that keep {p99_ms:g} ms, it answers most: {points[best][1]:,.3g} per second, with a 99th percentile "
        f"of {curve.p99_ms[best]:.3g} ms"
    )

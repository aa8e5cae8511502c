"""A level of load, measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from alipes.compat.perf_analyzer.settings import Measuring
from alipes.compat.perf_analyzer.windows import MeasuredWindow
from alipes.loadtest.spread import is_settled

__all__ = ["AGREEING", "MeasuredLevel", "Outcome", "agreement"]

Outcome: TypeAlias = Literal["settled", "rate_settled", "not_settled", "over_limit", "interrupted", "failed"]
"""`rate_settled`: rates agree and latencies do not, which is good enough for asynchronous calls."""

AGREEING = 3
"""Windows in a row that have to agree."""


@dataclass(frozen=True)
class MeasuredLevel:
    """What a level showed.

    Attributes:
        value: Requests under way, or requests per second.
        windows: In their order.
        outcome: How its measurement ended.
        failure: What a request failed with; empty where none did.
    """

    value: float
    windows: Sequence[MeasuredWindow]
    outcome: Outcome
    failure: str = ""

    @cached_property
    def result(self) -> MeasuredWindow:
        """The windows that agree as one; all of them where they do not."""
        return MeasuredWindow.merged(self.windows[-AGREEING:] if self.is_settled else self.windows)

    @property
    def is_settled(self) -> bool:
        """Whether its figures count."""
        return self.outcome in ("settled", "rate_settled")

    @property
    def has_answers(self) -> bool:
        """Whether there is anything to report."""
        return any(window.client.answers for window in self.windows)


def agreement(windows: Sequence[MeasuredWindow], measuring: Measuring) -> tuple[bool, bool]:
    """Whether the rates of the last windows agree, and whether their latencies do."""
    last = windows[-AGREEING:]
    if len(last) < AGREEING:
        return False, False
    within = measuring.stability_percent / 100
    return (
        is_settled([window.client.rate for window in last], within),
        is_settled([window.latency_ms(measuring.percentile) for window in last], within),
    )

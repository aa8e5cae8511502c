"""The figures of a simulated day as cells of a table."""

from __future__ import annotations

import math
from typing import Final

from alipes.autoscale.figures import DayFigures

__all__ = ["HEADINGS", "cells"]

HEADINGS: Final = (
    "median", "99 %", "waited", "no answer", "cold starts", "started", "most", "replica hours", "cost",
)  # fmt: skip
"""Of the columns, in the order of `cells`."""


def cells(figures: DayFigures) -> tuple[str, ...]:
    """One cell for each heading; empty where there is no figure."""
    return (
        _seconds(figures.p50_s),
        _seconds(figures.p99_s),
        f"{figures.waited:,.0f}",
        f"{figures.unanswered:,.0f}" if figures.unanswered else "",
        f"{figures.cold_starts:,}",
        f"{figures.started:,}",
        f"{figures.most_replicas:,}",
        f"{figures.replica_hours:,.1f}",
        "" if figures.cost is None else f"{figures.cost:,.2f}",
    )


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "no answer"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"

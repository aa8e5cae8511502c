"""What the slopes of a record say: what grows, what is flat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from support.soak.record import Record
from support.soak.series import SERIES, Series
from support.soak.slope import Slope, slope_of

Verdict = Literal["grows", "flat", "not judged", "too short"]


@dataclass(frozen=True)
class Finding:
    """One series, in its unit.

    Attributes:
        series: Which one.
        slope: Its line, after the warm-up; `None` if there are too few samples.
        median: Of the values after the warm-up.
        warm_up_s: How long that took.
    """

    series: Series
    slope: Slope | None
    median: float
    warm_up_s: float

    @property
    def tolerance_per_hour(self) -> float | None:
        """The slope at which the series rises as much as it may."""
        if self.slope is None or self.series.may_rise is None:
            return None
        return self.series.may_rise / self.slope.hours

    @property
    def verdict(self) -> Verdict:
        """It grows if all slopes of the interval rise, and the line rises more than it may."""
        if self.series.may_rise is None:
            return "not judged"
        if self.slope is None or self.tolerance_per_hour is None:
            return "too short"
        return "grows" if self.slope.low > 0 and self.slope.per_hour > self.tolerance_per_hour else "flat"


def findings(record: Record, warm_up_s: float) -> list[Finding]:
    """A finding for each series of a run, whose warm-up took so many seconds."""
    return [_finding(record, series, warm_up_s) for series in SERIES]


def _finding(record: Record, series: Series, warm_up_s: float) -> Finding:
    hours, values = record.column(series.name)
    warm = hours >= warm_up_s / 3600
    hours, values = hours[warm], values[warm] / series.scale
    median = float(np.median(values)) if len(values) else float("nan")
    return Finding(series, slope_of(hours, values), median, warm_up_s)

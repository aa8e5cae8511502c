"""The slope of a series over time, with a confidence interval that holds where neighbouring samples are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# Samples become the medians of so many equal parts of the time, each of some samples at least where there are enough:
# a burst that lasts for one or two of them moves none.
_MOST_PARTS: Final = 96
_FEWEST_PARTS: Final = 12
_SAMPLES_A_PART: Final = 5

# Errors are estimated from the slowest waves alone, whose number is the number of degrees of freedom.
_WAVES: Final = 8
# Student's t with eight degrees of freedom: 95 % lie within plus and minus.
_STUDENT_T: Final = 2.306
# Residuals that are more alike than this count as no more alike: the interval would have no end.
_MOST_ALIKE: Final = 0.97


@dataclass(frozen=True)
class Slope:
    """A line through a series.

    Attributes:
        per_hour: The slope.
        low: The least slope of the 95 % confidence interval.
        high: The greatest.
        middle_hours: The time in the middle of the series.
        middle: The line's value then, which is the same for every slope.
        hours: How long the series is.
    """

    per_hour: float
    low: float
    high: float
    middle_hours: float
    middle: float
    hours: float

    def at(self, hours: float, per_hour: float) -> float:
        """The value at a time of the line through the middle with this slope."""
        return self.middle + per_hour * (hours - self.middle_hours)


def parts(hours: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    """Times and values of equal parts of a series, each the median of its samples."""
    count = min(max(len(values) // _SAMPLES_A_PART, _FEWEST_PARTS), _MOST_PARTS)
    # A sample on the edge of two parts belongs to the second, whichever way its time is rounded.
    at = (hours - hours[0]) / (hours[-1] - hours[0]) * count
    of = np.clip(np.floor(at + 1e-6).astype(int), 0, count - 1)
    filled = np.unique(of)
    times = np.array([hours[of == part].mean() for part in filled])
    return times, np.array([np.median(values[of == part]) for part in filled])


def slope_of(hours: Numbers, values: Numbers) -> Slope | None:
    """The least-squares line through the parts of a series; `None` where there are too few samples.

    The error of the slope allows for residuals that follow each other slowly. The usual one would take a level that
    wanders for a trend. The scores are first freed of what each inherits from the one before it (an AR(1), corrected
    for its bias in short series), and their spread is then that of their eight slowest cosine waves.

    Source: Andrews and Monahan, 1992 (prewhitening); Lazarus, Lewis, Stock and Watson, 2018 (cosine waves with
    Student's t). Libraries that have them, such as statsmodels, are larger than the whole environment of the tests.
    """
    if len(values) < _FEWEST_PARTS or hours[-1] <= hours[0]:
        return None
    times, medians = parts(hours, values)
    if len(times) < _FEWEST_PARTS:
        return None
    middle_hours, first = float(times.mean()), float(medians[0])
    # Beside the first value, so that a constant has a slope of nothing at all.
    middle = float((medians - first).mean())
    away, rises = times - middle_hours, medians - first - middle
    spread = float(away @ away)
    slope = float(away @ rises) / spread
    error = _error(away, rises - slope * away) / spread
    low, high = slope - _STUDENT_T * error, slope + _STUDENT_T * error
    return Slope(slope, low, high, middle_hours, first + middle, float(hours[-1] - hours[0]))


def _error(away: Numbers, residuals: Numbers) -> float:
    """The standard error of the sum of residuals, each times its distance from the middle."""
    alike = _alike(residuals)
    scores = away[1:] * (residuals[1:] - alike * residuals[:-1])
    count = len(scores)
    places = (np.arange(count) + 0.5) / count
    waves = [np.sqrt(2 / count) * float(scores @ np.cos(np.pi * wave * places)) for wave in range(1, _WAVES + 1)]
    variance = float(np.mean(np.square(waves))) / (1 - alike) ** 2
    return float(np.sqrt(variance * len(residuals)))


def _alike(residuals: Numbers) -> float:
    """How much of a residual the next one inherits."""
    power = float(residuals @ residuals)
    # What rounding leaves of a straight line is no noise.
    if power <= np.finfo(float).tiny:
        return 0.0
    found = float(residuals[1:] @ residuals[:-1]) / power
    # A line was fitted, which takes the slowest part of the noise away.
    corrected = found + (2 + 4 * found) / len(residuals)
    return min(max(corrected, 0.0), _MOST_ALIKE)

"""Whether a version is worse than the one that it is to replace: pure, from the outcomes of both.

Each comparison holds an interval of what is compared against what is tolerated. The version is good where the whole
interval is tolerated, it is worse where the whole interval is beyond half of that, and else more requests are needed.
So a verdict is never the word of a handful of requests.

Outcomes that are compared are of the same time. Those of several steps are not added up: the shares of the versions
change with the step, so a busy minute would count for one of them more than for the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import numpy as np

from alipes.rollout.outcomes import Floats, Outcomes, TimeCounts

__all__ = ["Finding", "Judgement", "Tolerance", "Verdict", "judge"]

_QUANTILE: Final = 0.99
"""The time that is compared, of latencies and of intervals: what one answer of a hundred exceeds."""

_FEWEST: Final = 50
"""Fewest answers of which anything is said."""


class Verdict(StrEnum):
    """What the outcomes say."""

    GOOD = "good"
    WORSE = "worse"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much worse a version may be.

    Attributes:
        errors: Share of failed requests, beyond that of the version that it replaces.
        latency: The 99th percentile of the time to the first response, and that of the time between the responses of a
            stream, each as a share beyond that of the other version.
        drift: Largest distance between the distributions of an output, from 0 for equal to 1 for disjoint.
        confidence: Probability with which the verdict of a whole rollout is right.
    """

    errors: float = 0.01
    latency: float = 0.2
    drift: float = 0.1
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison.

    Attributes:
        about: What is compared: `errors`, `latency`, `response interval` of streams, or `output NAME`.
        verdict: What it says.
        low: The least that the difference may be, at the confidence.
        high: The most.
        tolerated: How much is tolerated.
    """

    about: str
    verdict: Verdict
    low: float
    high: float
    tolerated: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """All comparisons, and what they come to: worse where one is, good where all are."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def judge(stable: Outcomes, candidate: Outcomes, tolerance: Tolerance, looks: int = 1) -> Judgement:
    """Compares a candidate with the version that it is to replace.

    Args:
        stable: Outcomes of the version that serves.
        candidate: Outcomes of the version that is to replace it.
        tolerance: How much worse the candidate may be.
        looks: How often outcomes are judged at most, until there is a verdict; each time may go wrong by its share.
    """
    findings = tuple(_findings(stable, candidate, tolerance, looks))
    verdicts = {finding.verdict for finding in findings}
    if Verdict.WORSE in verdicts:
        return Judgement(Verdict.WORSE, findings)
    return Judgement(Verdict.OPEN if Verdict.OPEN in verdicts else Verdict.GOOD, findings)


def _findings(stable: Outcomes, candidate: Outcomes, tolerance: Tolerance, looks: int) -> Iterator[Finding]:
    outputs = sorted({*stable.samples, *candidate.samples})
    # Bonferroni: the looks and the comparisons share what may go wrong, so that together they keep the confidence.
    streams = stable.interval.total + candidate.interval.total > 0
    alpha = (1 - tolerance.confidence) / (looks * (2 + streams + len(outputs)))
    yield _finding("errors", _errors(stable, candidate, alpha), tolerance.errors)
    yield _finding("latency", _times(stable.latency, candidate.latency, alpha), tolerance.latency)
    if streams:
        # A whole stream takes as long as it has responses, which depends on what was asked: the time between two does
        # not.
        interval = _times(stable.interval, candidate.interval, alpha)
        yield _finding("response interval", interval, tolerance.latency)
    none = np.zeros(0)
    for name in outputs:
        distance = _distance(stable.samples.get(name, none), candidate.samples.get(name, none), alpha)
        yield _finding(f"output {name}", distance, tolerance.drift)


def _finding(about: str, interval: tuple[float, float], tolerated: float) -> Finding:
    low, high = interval
    if high <= tolerated:
        verdict = Verdict.GOOD
    elif low > tolerated / 2:
        verdict = Verdict.WORSE
    else:
        verdict = Verdict.OPEN
    return Finding(about, verdict, low, high, tolerated)


def _errors(stable: Outcomes, candidate: Outcomes, alpha: float) -> tuple[float, float]:
    """The difference of the shares of failures: Newcombe's interval, which holds near zero too."""
    if min(stable.requests, candidate.requests) < _FEWEST:
        return -1.0, 1.0
    z = NormalDist().inv_cdf(1 - alpha / 2)
    before, after = _wilson(stable, z), _wilson(candidate, z)
    share_before, share_after = stable.failed / stable.requests, candidate.failed / candidate.requests
    difference = share_after - share_before
    low = difference - math.hypot(share_after - after[0], before[1] - share_before)
    high = difference + math.hypot(after[1] - share_after, share_before - before[0])
    return low, high


def _wilson(outcomes: Outcomes, z: float) -> tuple[float, float]:
    """Wilson's interval of the share of failures."""
    count, share = outcomes.requests, outcomes.failed / outcomes.requests
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _times(stable: TimeCounts, candidate: TimeCounts, alpha: float) -> tuple[float, float]:
    """The ratio of the quantiles, less one.

    The rank of a quantile among n answers is a binomial number, so the answers at two ranks enclose the quantile
    whatever the distribution is. The logarithm of the ratio is taken for normal, with the halves of both intervals.
    """
    if min(stable.total, candidate.total) * (1 - _QUANTILE) < _FEWEST / 10:
        return -1.0, math.inf
    z = NormalDist().inv_cdf(1 - alpha / 2)
    before, after = _quantile(stable, z), _quantile(candidate, z)
    ratio = math.log(after[1] / before[1])
    low = ratio - math.hypot(math.log(after[1] / after[0]), math.log(before[2] / before[1]))
    high = ratio + math.hypot(math.log(after[2] / after[1]), math.log(before[1] / before[0]))
    return math.expm1(low), math.expm1(high)


def _quantile(times: TimeCounts, z: float) -> tuple[float, float, float]:
    """The quantile between what it is at least and at most, each at least a microsecond."""
    count = times.total
    half = z * math.sqrt(count * _QUANTILE * (1 - _QUANTILE))
    ranks = (count * _QUANTILE - half, count * _QUANTILE, count * _QUANTILE + half)
    low, middle, high = (max(times.at(min(max(rank, 0.0), count - 1)), 1.0) for rank in ranks)
    return low, middle, high


def _distance(before: Floats, after: Floats, alpha: float) -> tuple[float, float]:
    """The largest distance between two distributions, by Kolmogorov and Smirnov, with Massart's bound of its error."""
    if min(len(before), len(after)) < _FEWEST:
        return 0.0, 1.0
    places = np.sort(np.concatenate([before, after]))
    shares = [np.searchsorted(np.sort(one), places, side="right") / len(one) for one in (before, after)]
    distance = float(np.max(np.abs(shares[0] - shares[1])))
    error = math.sqrt(math.log(2 / alpha) / 2 * (1 / len(before) + 1 / len(after)))
    return max(distance - error, 0.0), min(distance + error, 1.0)

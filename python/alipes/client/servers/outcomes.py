"""What became of the requests for a model at several servers, added up as if one server had seen them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = ["MOST_SAMPLES", "added", "added_outcomes"]

Document: TypeAlias = dict[str, Any]

MOST_SAMPLES: Final = 4_096
"""As many samples of an output, the newest, does a server remember. Source: `crates/stats/src/outcomes.rs`."""


def added_outcomes(found: Sequence[Mapping[int, Mapping[str, Any]]]) -> dict[int, Document]:
    """Adds up the outcomes of several servers, version by version.

    Counts and latencies add up exactly: all servers sort latencies into the same classes. All samples are taken, unless
    a server had more answers than it remembers samples of: then each server's newest are taken in proportion to its
    answers, so that a quiet server weighs no more than it should.

    Args:
        found: What `traffic_outcomes` has of each server.
    """
    versions = sorted({version for one in found for version in one})
    return {version: added([one[version] for one in found if version in one]) for version in versions}


def added(parts: Sequence[Mapping[str, Any]]) -> Document:
    """Adds up outcomes, as `added_outcomes` says."""
    outputs = sorted({name for part in parts for name in part["samples"]})
    document: Document = {
        "answered": sum(part["answered"] for part in parts),
        "failed": sum(part["failed"] for part in parts),
        "latency_us": _times(part["latency_us"] for part in parts),
        "samples": {name: _samples(name, [part for part in parts if name in part["samples"]]) for name in outputs},
    }
    # A server names intervals where there were streams.
    intervals = _times(part.get("response_interval_us", ()) for part in parts)
    if intervals:
        document["response_interval_us"] = intervals
    comparisons = [part["comparison"] for part in parts if "comparison" in part]
    if comparisons:
        document["comparison"] = _compared(comparisons)
    return document


def _times(counted: Iterable[Sequence[Sequence[int]]]) -> list[list[int]]:
    """Times in microseconds, ascending, each with how often all servers saw it."""
    counts: Counter[int] = Counter()
    for pairs in counted:
        for time_us, count in pairs:
            counts[time_us] += count
    return [[time_us, counts[time_us]] for time_us in sorted(counts)]


def _samples(name: str, parts: Sequence[Mapping[str, Any]]) -> list[float]:
    """Samples of one output, each server's newest, in proportion to its answers."""
    full = [part for part in parts if len(part["samples"][name]) >= MOST_SAMPLES]
    share = min((len(part["samples"][name]) / part["answered"] for part in full), default=None)
    samples: list[float] = []
    for part in parts:
        newest = part["samples"][name]
        count = len(newest) if share is None else min(round(share * part["answered"]), len(newest))
        samples += newest[len(newest) - count :]
    return samples


def _compared(comparisons: Iterable[Mapping[str, Any]]) -> Document:
    """How the answers of a shadow compare with those that callers got, at all servers."""
    document: Document = {"compared": 0, "different": 0, "failed": 0, "dropped": 0}
    largest: dict[str, float] = {}
    for one in comparisons:
        for name in document:
            document[name] += one[name]
        for output, difference in one["largest_difference"].items():
            largest[output] = max(difference, largest.get(output, difference))
    return {**document, "largest_difference": largest}

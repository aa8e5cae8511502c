"""Verdicts on a version by what became of its requests: right at the stated confidence, over hundreds of rollouts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from alipes.rollout.outcomes import Outcomes, TimeCounts
from alipes.rollout.verdict import Tolerance, Verdict, judge

RUNS = 200
STEP = 2_000
"""Requests of each version between two looks."""

LOOKS = 20

Generator = np.random.Generator


def counted(times_us: np.ndarray) -> TimeCounts:
    """Times to two digits, as the server's histogram has them."""
    return TimeCounts(*np.unique(np.round(times_us, -1), return_counts=True))


def outcomes(random: Generator, *, errors: float, slower: float, drift: float) -> Outcomes:
    """Outcomes between two looks: latencies of a log-normal distribution, in a histogram as the server keeps it."""
    failed = int(random.binomial(STEP, errors))
    latencies = np.exp(random.normal(np.log(4_000), 0.5, STEP - failed)) * slower
    answered = STEP - failed
    return Outcomes(answered, failed, counted(latencies), {"Y": random.normal(drift, 1.0, answered)[:1_000]})


def joined(before: Outcomes, later: Outcomes) -> Outcomes:
    """What the server has counted after a further look."""
    times_us = np.union1d(before.latency.times_us, later.latency.times_us)
    counts = np.zeros(len(times_us), np.int64)
    for one in (before.latency, later.latency):
        counts[np.searchsorted(times_us, one.times_us)] += one.counts
    samples = np.concatenate([before.samples.get("Y", np.zeros(0)), later.samples["Y"]])[-4_096:]
    answered, failed = before.answered + later.answered, before.failed + later.failed
    return Outcomes(answered, failed, TimeCounts(times_us, counts), {"Y": samples})


def verdict_of(seed: int, **worse: float) -> tuple[Verdict, int]:
    """The verdict of a rollout, and how many looks it took."""
    random = np.random.default_rng(seed)
    stable, candidate = Outcomes(), Outcomes()
    usual = {"errors": 0.005, "slower": 1.0, "drift": 0.0}
    for look in range(1, LOOKS + 1):
        stable = joined(stable, outcomes(random, **usual))
        candidate = joined(candidate, outcomes(random, **(usual | worse)))
        found = judge(stable, candidate, Tolerance(), LOOKS).verdict
        if found is not Verdict.OPEN:
            return found, look
    return Verdict.OPEN, LOOKS


@pytest.mark.parametrize(
    ("worse", "right"),
    [
        ({}, Verdict.GOOD),
        ({"errors": 0.015}, Verdict.WORSE),
        ({"slower": 1.2}, Verdict.WORSE),
        # A shift by which the distributions are 0.1 apart.
        ({"drift": 0.2513}, Verdict.WORSE),
    ],
    ids=["equal", "one per cent more errors", "p99 longer by a fifth", "outputs that drift"],
)
def test_at_most_one_verdict_of_twenty_is_wrong(worse: dict[str, float], right: Verdict) -> None:
    verdicts = Counter(verdict_of(seed, **worse)[0] for seed in range(RUNS))
    assert verdicts[right] >= 0.95 * RUNS, verdicts


def test_a_handful_of_requests_gives_no_verdict() -> None:
    few = Outcomes(40, 9, TimeCounts.read([[100, 40]]), {"Y": np.ones(40)})
    judgement = judge(few, few, Tolerance())
    assert judgement.verdict is Verdict.OPEN
    assert {finding.verdict for finding in judgement.findings} == {Verdict.OPEN}


def test_outputs_that_differ_in_kind_are_found_beside_good_latencies() -> None:
    random = np.random.default_rng(1)
    stable = outcomes(random, errors=0.0, slower=1.0, drift=0.0)
    swapped = replace(stable, samples={"Y": -5 + stable.samples["Y"]})
    judgement = judge(stable, swapped, Tolerance())
    assert judgement.verdict is Verdict.WORSE
    assert [finding.about for finding in judgement.findings if finding.verdict is Verdict.WORSE] == ["output Y"]


def test_a_latency_has_its_rank_among_all_answers() -> None:
    both = Outcomes.read(
        {"answered": 5, "failed": 1, "latency_us": [[10, 2], [20, 1], [30, 2]], "samples": {"Y": [1, 2]}}
    )
    assert (both.answered, both.failed, both.requests) == (5, 1, 6)
    assert {name: values.tolist() for name, values in both.samples.items()} == {"Y": [1, 2]}
    assert [both.latency.at(rank) for rank in (0, 1.9, 2, 3, 4, 99)] == [10, 10, 20, 30, 30, 30]


def test_a_stream_whose_responses_come_slower_is_worse_whatever_its_length() -> None:
    random = np.random.default_rng(3)
    first = counted(np.exp(random.normal(np.log(90_000), 0.3, 5_000)))

    def streams(interval_us: float) -> Outcomes:
        interval = counted(np.exp(random.normal(np.log(interval_us), 0.3, 4_000)))
        return Outcomes(5_000, 0, first, {}, interval)

    for slower, verdict in ((1.0, Verdict.GOOD), (1.5, Verdict.WORSE)):
        judgement = judge(streams(30_000), streams(30_000 * slower), Tolerance())
        assert {finding.about: finding.verdict for finding in judgement.findings} == {
            "errors": Verdict.GOOD,
            "latency": Verdict.GOOD,
            "response interval": verdict,
        }
    # One that has stopped to send several responses cannot be compared, so it is not promoted.
    assert judge(streams(30_000), Outcomes(5_000, 0, first), Tolerance()).verdict is Verdict.OPEN


def test_intervals_are_read_where_a_server_counts_streams() -> None:
    document = {"answered": 3, "failed": 0, "latency_us": [[10, 3]], "samples": {}}
    assert Outcomes.read(document).interval.total == 0
    read = Outcomes.read({**document, "response_interval_us": [[4, 1], [6, 1]]})
    assert (read.interval.total, read.interval.at(1.5)) == (2, 6)

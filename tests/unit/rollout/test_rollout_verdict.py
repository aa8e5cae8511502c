"""Verdicts on a version by what became of its requests: right at the stated confidence, over hundreds of rollouts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.verdict import Tolerance, Verdict, judge

RUNS = 200
STEP = 2_000
"""Requests of each version between two looks."""

LOOKS = 20

Generator = np.random.Generator


def outcomes(random: Generator, *, errors: float, slower: float, drift: float) -> Outcomes:
    """The outcomes of a step: latencies of a log-normal distribution, in a histogram as the server keeps it."""
    failed = int(random.binomial(STEP, errors))
    latencies = np.exp(random.normal(np.log(4_000), 0.5, STEP - failed)) * slower
    # Two digits, as the server's histogram has them.
    edges = np.round(latencies, -1)
    values, counts = np.unique(edges, return_counts=True)
    answered = STEP - failed
    return Outcomes(answered, failed, values, counts, {"Y": random.normal(drift, 1.0, answered)[:1_000]})


def verdict_of(seed: int, **worse: float) -> tuple[Verdict, int]:
    """The verdict of a rollout with two looks a step, and how many looks it took."""
    random = np.random.default_rng(seed)
    stable, candidate = Outcomes(), Outcomes()
    usual = {"errors": 0.005, "slower": 1.0, "drift": 0.0}
    for look in range(1, LOOKS + 1):
        stable = stable.joined(outcomes(random, **usual))
        candidate = candidate.joined(outcomes(random, **(usual | worse)))
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
    few = Outcomes(40, 9, np.array([100.0]), np.array([40]), {"Y": np.ones(40)})
    judgement = judge(few, few, Tolerance())
    assert judgement.verdict is Verdict.OPEN
    assert {finding.verdict for finding in judgement.findings} == {Verdict.OPEN}


def test_outputs_that_differ_in_kind_are_found_beside_good_latencies() -> None:
    random = np.random.default_rng(1)
    stable = outcomes(random, errors=0.0, slower=1.0, drift=0.0)
    swapped = Outcomes(stable.answered, 0, stable.latencies_us, stable.counts, {"Y": -5 + stable.samples["Y"]})
    judgement = judge(stable, swapped, Tolerance())
    assert judgement.verdict is Verdict.WORSE
    assert [finding.about for finding in judgement.findings if finding.verdict is Verdict.WORSE] == ["output Y"]


def test_outcomes_of_two_steps_are_one() -> None:
    first = Outcomes.read({"answered": 3, "failed": 1, "latency_us": [[10, 2], [30, 1]], "samples": {"Y": [1, 2]}})
    later = Outcomes.read({"answered": 2, "failed": 0, "latency_us": [[20, 1], [30, 1]], "samples": {"Z": [3]}})
    both = first.joined(later)
    assert (both.answered, both.failed, both.requests) == (5, 1, 6)
    assert both.latencies_us.tolist() == [10, 20, 30]
    assert both.counts.tolist() == [2, 1, 2]
    assert {name: values.tolist() for name, values in both.samples.items()} == {"Y": [1, 2], "Z": [3]}
    assert [both.latency_at(rank) for rank in (0, 1.9, 2, 3, 4, 99)] == [10, 10, 20, 30, 30, 30]

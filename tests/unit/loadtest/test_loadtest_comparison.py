"""What can be concluded from a comparison, and what cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.loadtest import Candidate, Closed, Comparison, Histogram, Open, Window
from alipes.loadtest.pace import Pace


def window(seed: int, answers: int, mean_ms: float, **other: object) -> Window:
    times = np.unique(np.random.default_rng(seed).gamma(20, mean_ms / 20, answers).__mul__(1e6).astype(np.uint64))
    latencies = Histogram(times, np.ones(len(times), np.uint64))
    nothing = Histogram(np.zeros(1, np.uint64), np.array([len(times)], np.uint64))
    return Window(1.0, latencies, nothing, nothing, 1.0, 2.0, 3.0, **other)  # type: ignore[arg-type]


def comparison(
    answers: int = 1000, faster: float = 1.0, rounds: int = 6, pace: Pace | None = None, **other: object
) -> Comparison:
    candidates = tuple(Candidate(name, "http://localhost", "m") for name in ("old", "new"))
    old = [window(seed, answers, 10.0) for seed in range(rounds)]
    new = [window(100 + seed, round(answers * faster), 10.0 / faster, **other) for seed in range(rounds)]
    return Comparison(candidates, pace or Closed(1), (old, new))  # type: ignore[arg-type]


def test_a_difference_is_a_sentence_with_its_bounds() -> None:
    seen = comparison(faster=1.5)
    assert seen.rate.value == pytest.approx(1.5, rel=0.01)
    assert seen.latency(50).value == pytest.approx(1 / 1.5, rel=0.02)
    rate, median, *_ = seen.conclusions()
    assert rate == "new answers 1.5 (1.5 to 1.5) times as many requests a second as old"
    assert median.startswith("p50: new takes 0.6")
    assert median.endswith("times as long as old")


def test_a_comparison_as_text_is_its_table_and_the_conclusions() -> None:
    seen = comparison(faster=1.5)
    table, _, sentences = str(seen).partition("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["old", "rate", "p50", "p90", "p99", "p99.9"]
    assert sentences.splitlines() == [f"{sentence}." for sentence in seen.conclusions()]


def test_without_a_difference_none_is_claimed() -> None:
    seen = comparison()
    assert not seen.latency(50).differs
    assert "p50: no difference can be seen" in seen.conclusions()[1]


def test_a_percentile_with_few_answers_beyond_it_is_not_compared() -> None:
    seen = comparison(answers=300)
    assert seen.latency(90).is_known
    assert not seen.latency(99).is_known
    assert any("p99 cannot be compared: a window had" in one and "it takes 500" in one for one in seen.conclusions())


def test_in_an_open_loop_that_both_keep_up_with_the_rate_says_nothing() -> None:
    seen = comparison(pace=Open.at(1000))
    assert seen.conclusions()[0].startswith("the rate is that of the load")
    behind = comparison(pace=Open.at(1000), faster=0.5)
    assert "new answers 0.5" in behind.conclusions()[0]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [({"failures": {"refused": 2}}, "new: 12 failed: refused"), ({"tester_cores": 1.0}, "new: the tester used 1.0")],
)
def test_what_speaks_against_it_stands_beside_it(other: dict[str, Any], sentence: str) -> None:
    assert any(one.startswith(sentence) for one in comparison(**other).conclusions())


def test_a_side_without_answers_is_not_compared() -> None:
    nothing = Window(1.0, Histogram(), Histogram(), Histogram(), 0.0, 0.0, 0.0, {"no": 3})
    seen = comparison()
    seen = Comparison(seen.candidates, seen.pace, (seen.windows[0], [nothing] * 6))
    assert seen.conclusions()[0] == "the rates cannot be compared: a window had no answer"
    assert seen.to_dict()["ratios"]["rate"]["ratio"] is None


def test_figures_and_ratios_are_a_dictionary() -> None:
    figures = comparison(faster=2).to_dict()
    assert [one["name"] for one in figures["candidates"]] == ["old", "new"]
    assert figures["rounds"] == 6
    assert figures["ratios"]["rate"]["low"] <= 2 <= figures["ratios"]["rate"]["high"]

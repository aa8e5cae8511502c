"""What a search says of itself: the best, the others, the reasons, the files."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.tune import Goal, Limit, Machine, Outcome, Point, Rejected, Results, Space
from alipes.tune.report import report_page
from support.browser import broken_words, browser, overflow

SPACE = Space.of({"m": {"instances": [1, 2, 4], "callers": [1, 8]}})


def outcome(instances: int, callers: int, rate: float, p99_ms: float, failure: str = "") -> Outcome:
    point = Point.of({"m": {"instances": instances, "callers": callers}})
    figures = {"rate": rate, "rate_low": rate * 0.98, "rate_high": rate * 1.02, "p99_ms": p99_ms}
    return Outcome(point, {} if failure else figures, failure)


TRIALS = [
    outcome(1, 1, 100, 1),
    outcome(1, 8, 400, 4),
    outcome(2, 1, 90, 1.2),
    outcome(2, 8, 700, 6),
    outcome(4, 8, 690, 9),
    outcome(4, 1, 0, 0, "it swapped: 3 MiB went out"),
]


def results(*limits: str, trials: list[Outcome] = TRIALS, present: Outcome | None = TRIALS[1]) -> Results:
    goal = Goal(limits=tuple(map(Limit.parse, limits)))
    config = parse_pbtxt("instance_group { count: 2 }")
    rejected = [Rejected(Point.of({"m": {"instances": 9}}), "it <cannot> be")]
    return Results(Machine("a processor", 2, 8 << 30), goal, SPACE, trials, rejected, present, {"m": config})


def test_the_best_keeps_the_limits() -> None:
    assert results().best == TRIALS[3]
    assert results("p99_ms<=5").best == TRIALS[1]
    assert results("p99_ms<=5").is_feasible


def test_an_impossible_limit_is_answered_by_the_nearest_point() -> None:
    found = results("p99_ms<=0.5", "rate>=50")
    assert found.best == TRIALS[0]
    assert not found.is_feasible
    assert found.decisions()[0] == (
        "No trial kept all limits; this one comes nearest. It misses: 99th percentile of the latency at most 0.5 ms, "
        "where it has 1 ms."
    )


def test_each_decision_is_one_sentence() -> None:
    assert results("p99_ms<=8").decisions() == [
        "It keeps 99th percentile of the latency at most 8 ms (6 ms).",
        "Against the configuration as it was, under the same load: throughput 700/s instead of 400/s (+75%), 99th "
        "percentile of the latency 6 ms instead of 4 ms (+50%).",
        "Instances: 2 rather than 1: throughput 700/s instead of 400/s (+75%), 99th percentile of the latency 6 ms "
        "instead of 4 ms (+50%).",
        "Load: 8 rather than 1: throughput 700/s instead of 90/s (+678%), 99th percentile of the latency 6 ms instead "
        "of 1.2 ms (+400%).",
        "1 point was left out: it <cannot> be.",
    ]


def test_results_as_text_are_the_best_point_and_the_decisions() -> None:
    assert str(results()).splitlines() == ["instances 2, callers 8", *results().decisions()]
    failed = results(trials=TRIALS[5:], present=None)
    assert str(failed).splitlines() == failed.decisions()


def test_a_gain_within_the_noise_is_named_so() -> None:
    found = results().decisions()[1]
    assert found.startswith("Instances: 2 rather than 4: throughput 700/s instead of 690/s (+1%, within the noise)")


def test_a_present_configuration_that_is_best_or_failed_is_named_so() -> None:
    assert "The configuration as it was is the best that was found." in results(present=TRIALS[3]).decisions()
    assert "gave no figures under this load: it swapped" in results(present=TRIALS[5]).decisions()[0]


def test_where_every_trial_failed_the_reason_is_named() -> None:
    found = results(trials=TRIALS[5:], present=None)
    assert (found.best, found.is_feasible, found.ranked) == (None, False, [])
    assert found.decisions() == ["No trial gave figures: it swapped: 3 MiB went out."]
    assert results(trials=[], present=None).decisions() == ["No trial gave figures, since none was made."]


def test_the_front_has_what_no_other_beats_in_both() -> None:
    assert results().pareto() == [TRIALS[0], TRIALS[1], TRIALS[3]]
    assert results().pareto("p99_ms", "rate") == [TRIALS[0], TRIALS[1], TRIALS[3]]


def test_files_are_written(tmp_path: Path) -> None:
    found = results("p99_ms<=8")
    written = found.write(tmp_path / "out")
    assert [str(path.relative_to(tmp_path / "out")) for path in written] == [
        "m/config.pbtxt",
        "trials.csv",
        "report.html",
    ]
    assert parse_pbtxt(written[0].read_text()) == parse_pbtxt("instance_group { count: 2 }")
    with written[1].open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["rank"], row["instances"], row["rate"], row["failure"]) for row in rows[3:]] == [
        ("1", "2", "700", ""),
        ("5", "4", "690", ""),
        ("", "4", "", "it swapped: 3 MiB went out"),
    ]
    page = written[2].read_text()
    assert "it &lt;cannot&gt; be" in page
    assert all(sentence in page for sentence in found.decisions()[:4])
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_the_report_counts_the_points_of_its_space_and_those_beside_it(tmp_path: Path) -> None:
    page = results().write(tmp_path)[2].read_text()
    assert "<p>6 of 6 points were tried, 1 left out, on " in page
    elsewhere = outcome(3, 1, 95, 1.1)
    page = results(trials=[*TRIALS, elsewhere], present=elsewhere).write(tmp_path)[2].read_text()
    assert "<p>6 of 6 points were tried, and 1 beside them, 1 left out, on " in page


@pytest.mark.extra("plots")
def test_the_report_of_a_search_fits_the_window_of_a_telephone(tmp_path: Path) -> None:
    page = results("p99_ms<=8").write(tmp_path)[2]
    with browser() as shown:
        assert overflow(shown, page.as_uri()) <= 0
        assert broken_words(shown) == []


def test_the_notes_of_a_trial_are_folded_in_the_report() -> None:
    noted = replace(TRIALS[3], notes=("the rate went from <1> to 2/s", "late"), is_settled=False)
    page = report_page(results(trials=[*TRIALS[:3], noted]))
    assert "<summary>not settled, 2 notes</summary>" in page
    assert "<li>the rate went from &lt;1&gt; to 2/s</li><li>late</li>" in page
    assert page.count("<details>") == 1

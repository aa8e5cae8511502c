"""What a closed loop leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.loadtest import Closed, Histogram, Level, Open
from alipes.loadtest.omission import omission
from support.load_windows import histogram, window


def test_without_long_answers_nothing_is_missing() -> None:
    assert omission(Histogram()) is None
    assert omission(histogram(*[10.0] * 100)) is None
    assert omission(histogram(*[10.0] * 99, 99.0)) is None


def test_a_stall_hides_what_others_would_have_waited() -> None:
    """Of 10 s at 100 requests a second, the server stood still for one: 100 would have waited, one did."""
    seen = omission(histogram(*[10.0] * 900, 1000.0))
    assert seen is not None
    assert seen.times == pytest.approx(100)
    assert seen.share == pytest.approx(99 / 1000, rel=0.01)
    everybody = [10.0] * 900 + [1000.0] + [1000.0 - 10 * number for number in range(1, 100)]
    assert seen.p99_ms == pytest.approx(np.percentile(everybody, 99), rel=0.02)


def test_one_long_answer_of_many_changes_no_percentile() -> None:
    assert omission(histogram(*[10.0] * 50_000, 1000.0)) is None


def test_a_minute_beside_microseconds_takes_little_memory() -> None:
    seen = omission(histogram(*[0.02] * 1000, *np.linspace(50_000, 60_000, 200)))
    assert seen is not None
    assert seen.share > 0.99
    assert seen.p99_ms > 50_000


def test_a_closed_loop_says_so_and_how_to_see_it() -> None:
    stalled = window(latencies=histogram(*[10.0] * 900, 1000.0))
    (note,) = Level(Closed(1), [stalled], 1, True, 1).notes()
    assert "asks less while it waits, here up to 100 times the median" in note
    assert note.endswith("see it with --rate 720")
    assert Level(Open.at(100), [stalled], 1, True, 1).notes() == []

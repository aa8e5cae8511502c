"""A day of the bench: its requests come as its phases say, and its figures are those of what its clients saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.fleet import Fleet
from bench.load.day import DAY, Groups, Phase, arrivals, length_s
from bench.load.day_loop import Outcome, figures
from bench.load.tool import LoadFailed
from bench.models import settings
from bench.models.settings import DEFAULT, SWEEP, TUNED, Fixed
from bench.rows import selftuning
from bench.rows.selftuning import BEST, SelfTuningRow, self_tuning_rows
from bench.servers.endpoint import Endpoint

LATE = Fixed(10, 32)


def test_a_day_is_the_same_for_the_same_seed() -> None:
    one, again, other = arrivals(1), arrivals(1), arrivals(2)
    assert np.array_equal(one.moments_s, again.moments_s)
    assert not np.array_equal(one.moments_s, other.moments_s[: len(one.moments_s)])
    assert (np.diff(one.moments_s) >= 0).all()
    assert one.moments_s[-1] <= length_s() == sum(phase.seconds for phase in DAY)


def test_each_phase_has_its_requests() -> None:
    phases = (
        Phase(2, 5.0, even=10),
        Phase(100, 6.0, random=(0, 100)),
        Phase(1, 7.0, groups=Groups(4, 5, 0.01)),
    )
    day = arrivals(3, phases)
    even, random, grouped = (day.moments_s[day.texts_ms == text] for text in (5.0, 6.0, 7.0))
    assert np.allclose(even, np.arange(20) / 10 + 0.05)
    assert len(random) == pytest.approx(5000, rel=0.1)
    # A ramp from nothing brings a quarter of its requests in its first half.
    assert (random < 52).sum() == pytest.approx(1250, rel=0.2)
    groups = grouped.reshape(4, 5) - 102
    assert (np.ptp(groups, axis=1) <= 0.01).all()
    assert np.allclose(groups.min(axis=1), np.arange(4) / 4 + 0.125, atol=0.01)
    assert len(day.until(2).moments_s) == 20


def test_stretches_are_judged_by_a_hundredth_of_their_requests() -> None:
    day = arrivals(0, (Phase(2, 1.0, even=100), Phase(2, 1.0), Phase(4, 1.0, even=100)))
    latencies = np.full(len(day.moments_s), 10.0)
    latencies[:2] = 21.0  # 2 of 200: still kept
    latencies[200:203] = 21.0  # 3 of 200: not kept
    seen = figures(day, Outcome(latencies, 8.0, 7), 20.0)
    assert (seen["stretches"], seen["kept"], seen["late"], seen["answered"]) == (3, 2, 5, 600)
    assert (seen["p50_ms"], seen["seconds"], seen["checked"]) == (10.0, 8.0, 7)


def test_each_setting_is_a_model_of_its_own(tmp_path: Path) -> None:
    folder = settings.write(tmp_path)
    texts = {model: (folder / model / "config.pbtxt").read_text() for model in settings.MODELS}
    assert len(set(texts.values())) == len(settings.MODELS) == len(list(tmp_path.iterdir()))
    assert [model for model, text in texts.items() if "tuning.objective_p99_ms" in text] == [TUNED]
    assert texts[TUNED].startswith(texts[DEFAULT.model])
    assert "max_queue_delay_microseconds: 10000" in texts[LATE.model]


def outcomes(**kept: int) -> dict[str, dict[str, Any]]:
    """Outcomes in which a setting keeps the objective in one stretch of ten, unless it is named."""
    common = {"stretches": 10, "late": 50, "answered": 100, "seconds": 50.0}
    models = {fixed.model: {**common, "kept": 1} for fixed in SWEEP}
    return {**models, TUNED: {**common, "kept": 9}} | {
        model: {**common, "kept": count} for model, count in kept.items()
    }


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, dict[str, Any]]], list[tuple[int, float]]]:
    """Days that bring these outcomes; returns which were played."""

    def plays(brought: dict[str, dict[str, Any]]) -> list[tuple[int, float]]:
        played: list[tuple[int, float]] = []

        def one(endpoint: Endpoint, seed: int, seconds: float) -> dict[str, dict[str, Any]]:
            played.append((seed, seconds))
            return brought

        monkeypatch.setattr(selftuning, "play", one)
        monkeypatch.setattr(Fleet, "alipes_on", lambda fleet, name, folder: None)
        return played

    return plays


def rows() -> tuple[SelfTuningRow, SelfTuningRow]:
    kept, rate = self_tuning_rows()
    assert isinstance(kept, SelfTuningRow)
    assert isinstance(rate, SelfTuningRow)
    return kept, rate


def test_both_rows_read_the_same_days(play: Callable[..., list[tuple[int, float]]]) -> None:
    brought = outcomes(**{LATE.model: 6})
    played = play(brought)
    kept, rate = rows()
    fleet = Fleet(frozenset())
    cells = kept.cells(fleet)
    assert [cell.measure(0.4).value for cell in cells] == [0.0] * 3
    played.clear()
    assert [[cell.measure(1.5).value for cell in cells] for _ in range(2)] == [[90.0, 10.0, 60.0]] * 2
    detail = cells[-1].measure(1.5).detail
    assert detail["setting"] == "10 ms, 32 rows"
    assert detail["all"] == {model: outcome["kept"] for model, outcome in brought.items()}
    assert [cell.measure(1.5).value for cell in rate.cells(fleet)] == [2.0] * 3
    assert played == [(0, length_s()), (1, length_s()), (2, length_s())]


def test_the_best_setting_of_two_has_fewer_late_requests() -> None:
    seen = outcomes(**{LATE.model: 6, SWEEP[2].model: 6})
    seen[LATE.model]["late"] = 3
    assert selftuning.best(seen) == LATE


def test_nothing_is_divided_by_a_setting_that_never_keeps_it(play: Callable[..., list[tuple[int, float]]]) -> None:
    play(outcomes(**{fixed.model: 0 for fixed in SWEEP}, **{TUNED: 0}))
    tuned, _, best = rows()[0].cells(Fleet(frozenset()))
    assert tuned.measure(1.5).value == 0
    assert best.label == BEST
    with pytest.raises(LoadFailed, match="this machine is too slow for the row"):
        best.measure(1.5)

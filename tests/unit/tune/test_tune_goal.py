"""Goals: what counts, what has to be kept, and what it costs."""

from __future__ import annotations

import math

import pytest
from alipes import ConfigError
from alipes.tune import Goal, Limit, Objective


def test_limits_are_read_from_text() -> None:
    assert Limit.parse("p99_ms<=20") == Limit("p99_ms", 20, "at most")
    assert Limit.parse(" m-1.rate >= 1e3 ") == Limit("m-1.rate", 1000, "at least")
    assert str(Limit.parse("m.p99_ms<20")) == "99th percentile of the latency of m at most 20 ms"


@pytest.mark.parametrize("text", ["", "p99_ms", "p99_ms=20", "p99_ms<=x", "p99_ms<=0", "p98_ms<=3", "rate>=-1"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Limit.parse(text)


def test_a_limit_that_is_missed_weighs_more_than_any_score() -> None:
    goal = Goal(limits=(Limit.parse("p99_ms<=20"),))
    within = goal.rank({"rate": 1, "p99_ms": 20})
    nearer, farther = (goal.rank({"rate": rate, "p99_ms": p99}) for rate, p99 in ((1e6, 21), (1e9, 40)))
    assert within > nearer > farther
    assert goal.missed({"rate": 1, "p99_ms": 21}) == list(goal.limits)
    assert goal.missed({"rate": 1, "p99_ms": 20}) == []


def test_of_equal_weights_twice_of_one_is_worth_half_of_the_other() -> None:
    goal = Goal((Objective("rate"), Objective("p99_ms")))
    assert goal.rank({"rate": 100, "p99_ms": 10}) == pytest.approx(goal.rank({"rate": 200, "p99_ms": 20}))
    heavier = Goal((Objective("rate"), Objective("p99_ms", 2)))
    assert heavier.rank({"rate": 100, "p99_ms": 10}) > heavier.rank({"rate": 200, "p99_ms": 20})


@pytest.mark.parametrize("figures", [{}, {"rate": math.nan}, {"rate": math.inf}])
def test_figures_that_are_none_fail(figures: dict[str, float]) -> None:
    assert Goal().rank(figures).score == -math.inf


def test_a_demand_takes_whole_servers() -> None:
    goal = Goal((Objective("cost_per_hour"),), server_hour_price=0.5, demand=2500)
    assert goal.costs(1000) == {"cost": pytest.approx(0.5 / 3.6), "cost_per_hour": 1.5}
    assert goal.costs(2500)["cost_per_hour"] == 0.5
    assert goal.costs(0) == {}
    assert Goal().costs(1000) == {}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Goal((Objective("cost"),)), "price of a server-hour"),
        (lambda: Goal((Objective("cost_per_hour"),), server_hour_price=1), "needs the demand"),
        (lambda: Goal(()), "no objective"),
        (lambda: Goal(alternatives=((),)), "an alternative has no limit"),
        (lambda: Objective("speed"), "no figure 'speed'"),
        (lambda: Objective("rate", 0), "above 0"),
        (lambda: Goal(server_hour_price=-1), "above 0"),
    ],
)
def test_a_goal_that_cannot_be_counted_is_refused(make: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()  # type: ignore[operator]


EITHER = Goal(
    limits=(Limit.parse("memory_mb<=100"),),
    alternatives=((Limit.parse("p99_ms<=10"),), (Limit.parse("p99_ms<=30"), Limit.parse("rate>=500"))),
)


@pytest.mark.parametrize(
    ("rate", "p99_ms", "memory_mb", "missed"),
    [
        (100, 9, 50, []),
        (600, 25, 50, []),
        (600, 9, 120, ["memory_mb<=100"]),
        (600, 40, 50, ["p99_ms<=30"]),
        (450, 20, 50, ["rate>=500"]),
        (10, 12, 50, ["p99_ms<=10"]),
    ],
)
def test_one_of_the_alternatives_is_enough(rate: float, p99_ms: float, memory_mb: float, missed: list[str]) -> None:
    """Where none is, the nearest one counts."""
    figures = {"rate": rate, "p99_ms": p99_ms, "memory_mb": memory_mb}
    assert EITHER.missed(figures) == [Limit.parse(text) for text in missed]
    assert (EITHER.rank(figures).compliance == 0) == (not missed)


def test_alternatives_are_named_for_people() -> None:
    assert EITHER.limits_text() == (
        "memory at most 100 MB, either 99th percentile of the latency at most 10 ms, or 99th percentile of the "
        "latency at most 30 ms and throughput at least 500/s"
    )
    assert Goal().limits_text() == ""


def test_the_margin_says_how_near_a_limit_is() -> None:
    goal = Goal(limits=(Limit.parse("p99_ms<=20"), Limit.parse("rate>=100")))
    near, far, over = (goal.rank({"rate": 400, "p99_ms": p99_ms}) for p99_ms in (19, 5, 40))
    assert 0 < near.margin < far.margin == pytest.approx(math.log(4))
    assert over.margin == over.compliance == pytest.approx(-math.log(2))

"""Replayed days: what waits, what it costs, and what the two scalers make of the same day."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alipes.autoscale import (
    DayFigures,
    KnativeScaler,
    KnativeSettings,
    Replica,
    Scaler,
    ServiceCurve,
    ServiceState,
    SimulatedDay,
    StartupAwareScaler,
    StartupAwareSettings,
    simulate,
)

CURVE = ServiceCurve.of_service_time(0.2, 4)
"""20 requests per second."""


class Fixed:
    """A scaler that orders what it was made with."""

    def __init__(self, first: int, later: int | None = None) -> None:
        self.first = first
        self.later = first if later is None else later

    def observe(self, second: int, state: ServiceState) -> None:
        """Nothing is learnt."""

    def decide(self, second: int, state: ServiceState) -> int:
        """Always the same."""
        return self.later


def day_of(arrived: list[float], scaler: Scaler, start_up_s: float = 10.0) -> SimulatedDay:
    return simulate(np.array(arrived), Replica(start_up_s, CURVE, 4), scaler)


def both(arrived: list[float], start_up_s: float, most: int = 40) -> tuple[DayFigures, DayFigures]:
    ours = StartupAwareSettings(start_up_s=start_up_s, curve=CURVE, concurrency=4, most=most)
    knative = KnativeSettings(container_concurrency=4, most=most)
    scalers: tuple[Scaler, Scaler] = (KnativeScaler(knative), StartupAwareScaler(ours))
    first, second = (DayFigures.of(day_of(arrived, scaler, start_up_s)) for scaler in scalers)
    return first, second


def test_requests_that_replicas_can_take_do_not_wait() -> None:
    figures = DayFigures.of(day_of([19.0] * 60, Fixed(1)), hour_price=6.0)
    assert (figures.p50_s, figures.p99_s) == pytest.approx((0.2, 0.2))
    assert (figures.requests, figures.waited, figures.unanswered) == (19 * 60, 0, 0)
    assert (figures.replica_hours, figures.cost) == pytest.approx((1 / 60, 0.1))


def test_a_queue_grows_and_shrinks_by_what_replicas_lack() -> None:
    day = day_of([30.0] * 10 + [0.0] * 10, Fixed(1))
    # After ten seconds 100 requests wait, for five seconds of one replica.
    assert day.waits_s[9, -1] == pytest.approx(5.0, abs=0.1)
    assert DayFigures.of(day).p99_s == pytest.approx(5.0 + 0.2, abs=0.2)
    assert day.waits_s[0, 0] == pytest.approx(0.0625, abs=0.01)


def test_a_request_without_a_replica_waits_for_its_start() -> None:
    day = day_of([0.0] * 9 + [1.0] + [0.0] * 40, Fixed(0, 1), start_up_s=12)
    figures = DayFigures.of(day)
    assert figures.cold_starts == 0  # it was ordered at the first tick, without any request
    assert day.waits_s[9].max() < 6
    woken = day_of([0.0] * 10 + [1.0] + [0.0] * 40, _OnRequest(), start_up_s=12)
    assert DayFigures.of(woken).cold_starts == 1
    assert woken.waits_s[10, 0] == pytest.approx(12.9, abs=0.2)


class _OnRequest(Fixed):
    """Orders a replica once a request waits."""

    def __init__(self) -> None:
        super().__init__(0)

    def decide(self, second: int, state: ServiceState) -> int:
        return 1 if state.in_service or state.replicas else 0


def test_requests_that_no_replica_takes_have_no_answer() -> None:
    figures = DayFigures.of(day_of([1.0] * 10, Fixed(0)))
    assert (figures.unanswered, figures.p99_s) == (10, math.inf)
    assert figures.to_document()["p99_s"] is None


def test_replicas_cost_from_their_order_on_and_starting_ones_go_first() -> None:
    class Twice(Fixed):
        def decide(self, second: int, state: ServiceState) -> int:
            return 5 if second < 10 else 2

    day = day_of([1.0] * 30, Twice(2), start_up_s=20)
    assert list(day.replicas[1:4]) == [2, 5, 5]
    assert set(day.ready) == {2}
    assert day.replicas[-1] == 2


def test_the_same_day_gives_the_same_figures() -> None:
    arrived = [float(second % 37) for second in range(400)]
    assert both(arrived, 20) == both(arrived, 20)


def test_a_ramp_is_met_where_start_up_time_is_known() -> None:
    ramp = np.interp(np.arange(7200) % 1800, [0, 600, 1200, 1800], [2, 90, 90, 2])
    knative, ours = both(list(ramp), 60)
    assert knative.waited > 1000 > ours.waited
    assert ours.waited == 0
    assert ours.p99_s == pytest.approx(0.2)
    assert ours.replica_hours < 1.1 * knative.replica_hours


def test_a_slow_start_is_not_repeated_for_each_request() -> None:
    sparse = [2.0 if second % 150 == 0 else 0.0 for second in range(7200)]
    knative, ours = both(sparse, 60)
    assert (knative.cold_starts, ours.cold_starts) == (47, 0)
    assert ours.p99_s < 1 < knative.p99_s


def test_replicas_that_start_at_once_go_sooner_than_with_knative() -> None:
    sparse = [2.0 if second % 300 == 0 else 0.0 for second in range(7200)]
    knative, ours = both(sparse, 1)
    assert ours.replica_hours < 0.7 * knative.replica_hours


def test_a_burst_orders_no_more_replicas_than_it_needs() -> None:
    burst = [10.0] * 600 + [100.0] * 120 + [10.0] * 600
    knative, ours = both(burst, 30, most=0)
    assert ours.most_replicas < knative.most_replicas / 3
    assert ours.replica_hours < knative.replica_hours
    assert ours.p99_s < 1.3 * knative.p99_s


def test_the_last_replica_stays_for_the_window_and_the_grace() -> None:
    knative = KnativeScaler(KnativeSettings(container_concurrency=4, target_burst_capacity=0))
    day = day_of([10.0] * 100 + [0.0] * 200, knative)
    gone = int(np.argmax(day.replicas[100:] == 0))
    assert 90 <= gone <= 96  # 60 s of the window, 30 s in which requests pass the activator
    lasting = KnativeScaler(KnativeSettings(container_concurrency=4, scale_to_zero=False))
    assert day_of([10.0] * 100 + [0.0] * 200, lasting).replicas.min() == 1
    retained = KnativeScaler(KnativeSettings(container_concurrency=4, retention_s=120))
    assert np.argmax(day_of([10.0] * 100 + [0.0] * 200, retained).replicas[100:] == 0) >= 178


@pytest.mark.parametrize("least", [0, 3])
def test_replicas_stay_within_bounds(least: int) -> None:
    ours = StartupAwareSettings(start_up_s=5, curve=CURVE, concurrency=4, least=least, most=6)
    day = day_of([0.0] * 200 + [500.0] * 100, StartupAwareScaler(ours))
    assert (day.replicas.min(), day.replicas.max()) == (least, 6)

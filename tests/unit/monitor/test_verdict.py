"""What holds the work up."""

from __future__ import annotations

from alipes.monitor import verdict
from alipes.monitor.columns import DURATIONS
from alipes.monitor.ledger import Row


def row(model: str, queue: int, compute: int, count: int = 1) -> Row:
    durations = dict(zip(DURATIONS, (queue, 0, compute, 0, queue + compute), strict=True))
    return Row(0.0, "here", model, 1, count, durations)


def test_without_an_execution_the_verdict_is_idle() -> None:
    assert verdict([]).kind == "idle"


def test_the_model_with_the_longest_queue_is_waited_for() -> None:
    found = verdict([row("fast", 5, 10), row("slow", 900, 100)] * 4)
    assert (found.kind, found.model) == ("model", "slow")
    assert "900 us in the queue of slow" in str(found)


def test_where_queues_are_short_the_clients_hold_the_work_up() -> None:
    assert verdict([row("fast", 5, 10), row("slow", 90, 100)] * 4).kind == "clients"


def test_a_growing_queue_is_reported() -> None:
    assert "and it grows" in verdict([row("m", 100 * number, 10) for number in range(1, 9)]).text
    assert "and it grows" not in verdict([row("m", 100, 10)] * 8).text


def test_a_first_execution_is_slow_and_counts_only_where_there_is_no_other() -> None:
    assert verdict([row("m", 10_000_000, 1), *[row("m", 1, 10)] * 3]).kind == "clients"
    assert verdict([row("m", 10_000_000, 1)]).kind == "model"


def test_means_are_weighted_by_executions() -> None:
    assert "50 us in the queue of m for each execution" in verdict([row("m", 1, 1), row("m", 500, 20, count=10)]).text

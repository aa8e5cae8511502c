"""A look at a rollout as tables: streams have one more column, other requests do not."""

from __future__ import annotations

import io

import pytest
from alipes.cli.rollout_view import table_of
from alipes.rollout import Look, Outcomes, TimeCounts, Tolerance, judge
from rich.console import Console


def shown(stable: Outcomes, candidate: Outcomes) -> str:
    look = Look(50, stable, candidate, judge(stable, candidate, Tolerance()), 3.0)
    out = io.StringIO()
    Console(file=out, width=120).print(table_of(look))
    return out.getvalue()


@pytest.mark.parametrize("answered", [0, 4])
def test_a_rollout_without_streams_shows_no_interval(answered: int) -> None:
    outcomes = Outcomes(answered, 1, TimeCounts.read([[2_000, answered]] if answered else []))
    table = shown(outcomes, outcomes)
    assert "interval" not in table
    assert ("2 ms" in table) == (answered > 0)


def test_a_rollout_of_streams_shows_the_interval_beside_the_latency() -> None:
    latency = TimeCounts.read([[2_000, 4]])
    streams = Outcomes(4, 0, latency, {}, TimeCounts.read([[30_000, 3]]))
    rows = [line.split("  ") for line in shown(streams, Outcomes(4, 0, latency)).splitlines()]
    stable, candidate = (next(row for row in rows if row[0] == name) for name in ("stable", "candidate"))
    assert (stable[-1].strip(), candidate[-1].strip()) == ("30 ms", "-")
    assert any(row[0] == "response interval" for row in rows)

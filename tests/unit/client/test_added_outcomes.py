"""Outcomes of several servers add up to those of one server that saw all requests."""

from __future__ import annotations

import random
from typing import Any

import pytest
from alipes.client.servers.outcomes import MOST_SAMPLES, added_outcomes


def outcomes(latencies: list[int], failed: int, samples: list[float], **more: Any) -> dict[str, Any]:
    counts = [[latency, latencies.count(latency)] for latency in sorted(set(latencies))]
    named = {"Y": samples} if samples else {}
    return {"answered": len(latencies), "failed": failed, "latency_us": counts, "samples": named, **more}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_parts_add_up_to_the_whole(count: int) -> None:
    chance = random.Random(count)
    latencies = [chance.choice([50, 51, 100, 2_000]) for _ in range(300)]
    samples = [float(number) for number in range(300)]
    whole = {version: outcomes(latencies, 7 * count, samples) for version in (1, 2)}
    parts = [{version: outcomes(latencies[n::count], 7, samples[n::count]) for version in (1, 2)} for n in range(count)]
    added = added_outcomes(parts)
    for document in added.values():
        document["samples"]["Y"].sort()
    assert added == whole


def test_versions_and_outputs_of_one_server_alone_count() -> None:
    one = {1: outcomes([5], 0, []), 2: outcomes([7], 0, [1.0])}
    added = added_outcomes([one, {1: outcomes([5], 1, [2.0])}, {}])
    assert added == {1: outcomes([5, 5], 1, [2.0]), 2: outcomes([7], 0, [1.0])}
    assert added_outcomes([]) == {}


def test_a_quiet_server_weighs_as_much_as_its_answers() -> None:
    busy = outcomes([5] * 4 * MOST_SAMPLES, 0, [1.0] * MOST_SAMPLES)
    quiet = outcomes([5] * MOST_SAMPLES, 0, [0.0] * (MOST_SAMPLES - 100) + [2.0] * 100)
    samples = added_outcomes([{1: busy}, {1: quiet}])[1]["samples"]["Y"]
    assert samples.count(1.0) == MOST_SAMPLES
    # A quarter of its samples, the newest.
    assert len(samples) - MOST_SAMPLES == MOST_SAMPLES // 4
    assert samples.count(2.0) == 100


def test_intervals_of_streams_add_up_beside_servers_without_any() -> None:
    first = outcomes([5, 5], 0, [], response_interval_us=[[20, 1], [30, 2]])
    second = outcomes([5], 0, [], response_interval_us=[[30, 1]])
    added = added_outcomes([{1: first}, {1: second}, {1: outcomes([5], 0, [])}])
    assert added == {1: outcomes([5] * 4, 0, [], response_interval_us=[[20, 1], [30, 3]])}


def test_comparisons_with_a_shadow_add_up() -> None:
    def compared(number: int, largest: dict[str, float]) -> dict[str, Any]:
        counts = {"compared": number, "different": 1, "failed": 2, "dropped": 3}
        return outcomes([], 0, [], comparison={**counts, "largest_difference": largest})

    added = added_outcomes(
        [{2: compared(10, {"Y": 0.5, "Z": 1})}, {2: compared(5, {"Y": 0.7})}, {2: outcomes([], 0, [])}]
    )
    assert added[2]["comparison"] == {
        "compared": 15,
        "different": 2,
        "failed": 4,
        "dropped": 6,
        "largest_difference": {"Y": 0.7, "Z": 1},
    }

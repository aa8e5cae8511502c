"""The moments of single requests."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.compat.perf_analyzer.logged import LoggedRequests, seconds_of


def logged(*requests: tuple[int, int, int, bool, int], missing: int = 0) -> LoggedRequests:
    """Requests: number, due, over, whether it failed, responses."""
    rows = np.array(requests, np.int64).reshape(-1, 5)
    names = ("request", "due_ns", "end_ns", "failed", "responses")
    columns = dict(zip(names, rows.T, strict=True))
    columns = {**columns, "begun_ns": columns["due_ns"] + 1, "failed": columns["failed"].astype(bool)}
    return LoggedRequests(columns, np.arange(100, 100 + int(rows[:, 4].sum())), missing)


def test_each_request_has_its_own_responses() -> None:
    part = logged((0, 10, 20, False, 1), (1, 11, 30, False, 3), (0, 12, 31, True, 1), (1, 13, 32, False, 0))
    assert list(part.documents()) == [
        {"timestamp": 11, "response_timestamps": [100]},
        {"timestamp": 12, "response_timestamps": [101, 102, 103]},
        {"timestamp": 14, "response_timestamps": []},
    ]


def test_sequences_end_with_their_last_request() -> None:
    part = logged((0, 1, 2, False, 1), (1, 2, 3, False, 1), (0, 3, 4, False, 1))
    assert part.ended(np.array([False, True])) == 1
    assert part.ended(np.array([True, True])) == 3


def test_a_number_of_requests_lasts_from_the_first_due_to_the_last_end() -> None:
    parts = [logged((0, 1_000, 5_000, False, 1)), logged(), logged((0, 2_000, 9_000, False, 1))]
    assert seconds_of(parts) == pytest.approx(8e-6)
    assert seconds_of([*parts, logged(missing=1)]) is None
    assert seconds_of([logged()]) is None

"""What a load sends before its first window."""

from __future__ import annotations

import pytest
from alipes.loadtest import Closed, Measuring, Posts
from alipes.loadtest.measure import prepare, read_window, running, warmed_up
from support.scripted_latency import ScriptedLatency
from support.waiting import until


@pytest.mark.parametrize(("warm_up_s", "counted"), [(0.0, True), (0.001, False)])
def test_only_a_warm_up_leaves_answers_out(warm_up_s: float, counted: bool) -> None:
    """Also where the tester stands still between its first request and its first window."""
    measuring = Measuring(warm_up_s=warm_up_s)
    with ScriptedLatency() as server:
        requests = prepare(Posts("/", [b"1"]), server.address)
        with running(requests, Closed(1), measuring) as engine:
            until(lambda: len(server.record()) > 10, "the first answers")
            begun = warmed_up(engine, measuring)
        answers = read_window(engine, begun).answers
        # One more may be in flight.
        assert (answers >= len(server.record()) - 1) is counted

"""Latencies, against the record of a server whose latencies are scripted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from alipes.loadtest import Closed, Level, Measuring, Open, Posts, RequestLog, Window, run
from alipes.loadtest.measure import prepare, running
from alipes.loadtest.pace import Pace
from support.scripted_latency import ScriptedLatency

# What each request says of its latency, in milliseconds.
CONSTANT = [b"20"]
# No percentile that is looked at is the longest of the short ones, which chance decides.
BIMODAL = [b"20"] * 17 + [b"120"] * 3

PERCENTS = np.array([50, 90, 95])


@pytest.fixture
def scripted() -> Iterator[ScriptedLatency]:
    with ScriptedLatency() as server:
        yield server


def measured(server: ScriptedLatency, bodies: list[bytes], pace: Pace, count: int) -> Level:
    return run(Posts("/", bodies), pace, address=server.address, measuring=Measuring(count=count)).levels[0]


def recorded_ms(server: ScriptedLatency) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The server's own latencies."""
    record = server.record()
    return (record[:, 1] - record[:, 0]) / 1e6


@pytest.mark.parametrize("bodies", [CONSTANT, BIMODAL], ids=["constant", "bimodal"])
def test_no_request_is_lost_and_none_is_quicker_than_the_server(scripted: ScriptedLatency, bodies: list[bytes]) -> None:
    result = measured(scripted, bodies, Open.at(200), 100).result
    recorded = recorded_ms(scripted)
    assert len(recorded) == result.answers == 100
    # A histogram is right within 0.1 %.
    for percent in (0, 50, 95, 99, 100):
        least = np.percentile(recorded, percent, method="inverted_cdf")
        assert result.latencies.percentile_ms(percent) >= 0.998 * least


def test_an_open_loop_shows_a_stall_that_a_closed_one_hides(scripted: ScriptedLatency) -> None:
    """A second of 100 requests a second: half of the hundred wait for more than half of it."""
    bodies = [*[b"20"] * 20, b"stall 1000", *[b"20"] * 179]
    opened = measured(scripted, bodies, Open.at(100), 200)
    closed = measured(scripted, bodies, Closed(1), 60)
    waited = [
        int(level.result.latencies.counts[level.result.latencies.times_ns > 5e8].sum()) for level in (opened, closed)
    ]
    assert waited[0] >= 40
    assert waited[1] < waited[0] / 5
    assert any("a closed loop asks less while it waits" in note for note in closed.notes())
    assert not any("a closed loop" in note for note in opened.notes())


def test_a_latency_begins_when_its_request_was_due_however_late_it_is(scripted: ScriptedLatency) -> None:
    """One connection, which the first request keeps busy: the second is due and cannot be sent."""
    requests = prepare(Posts("/", [b"100", b"1"]), scripted.address)
    pace = Open(((1.0, 200, 200),), in_flight=1)
    with running(requests, pace, Measuring(count=2, log=2)) as engine:
        assert engine.wait(60)
        record = engine.cut()
    log, window = RequestLog.read(record), Window.read(record, 1.0)
    assert log.request.tolist() == [0, 1]
    # They are due as the schedule says, whatever happens.
    assert abs(np.diff(log.due_ns)[0] - 5e6) < 1e3
    waited_ns = log.begun_ns - log.due_ns
    assert waited_ns[1] >= 90e6
    latencies_ns = log.end_ns - log.due_ns
    assert (latencies_ns >= waited_ns + 1e6).all()
    # A histogram is right within 0.1 %.
    assert window.latencies.percentile_ms(100) == pytest.approx(latencies_ns.max() / 1e6, rel=0.002)
    assert window.latencies.percentile_ms(50) == pytest.approx(latencies_ns.min() / 1e6, rel=0.002)
    inside_ms = window.lateness.percentile_ms(100) + window.queueing.percentile_ms(100)
    assert inside_ms >= 0.99 * waited_ns.max() / 1e6


@pytest.mark.proof
@pytest.mark.alone
@pytest.mark.parametrize(
    ("bodies", "pace"),
    [
        (CONSTANT, Open.at(100)),
        (CONSTANT, Open.at(100, seed=1)),
        (BIMODAL, Open.at(100)),
        ([*CONSTANT * 200, b"stall 1000", *CONSTANT * 599], Open.at(100)),
    ],
    ids=["constant", "random", "bimodal", "stall"],
)
def test_percentiles_are_those_of_the_server(scripted: ScriptedLatency, bodies: list[bytes], pace: Pace) -> None:
    """Within 1 %, on a machine that does nothing else; in one of three attempts.

    Up to the 95th: now and then a virtual machine takes a millisecond to turn to a process whose time has come, which
    the 99th percentile of eight hundred requests shows; a tenth of that is the rule, too much for 1 % of 20 ms.
    """
    shares = [share_of_the_limit(scripted, bodies, pace)]
    while shares[-1] > 1 and len(shares) < 3:
        shares.append(share_of_the_limit(scripted, bodies, pace))
    assert shares[-1] <= 1, shares


def share_of_the_limit(server: ScriptedLatency, bodies: list[bytes], pace: Pace) -> float:
    """How far the percentile that is farthest from the server's is off: 1 is 1 %, or 200 µs where that is more."""
    begun = len(server.record())
    latencies = measured(server, bodies, pace, 800).result.latencies
    recorded = recorded_ms(server)[begun:]
    assert len(recorded) == latencies.count == 800
    truth = np.percentile(recorded, PERCENTS, method="inverted_cdf")
    seen = np.array([latencies.percentile_ms(percent) for percent in PERCENTS])
    return float((np.abs(seen - truth) / np.maximum(0.01 * truth, 0.2)).max())

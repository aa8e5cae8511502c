"""Loads two servers, or two models, in turn, and says by how much they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from alipes._core import LoadTestRequests
from alipes.client import Tls
from alipes.errors import ConfigError
from alipes.loadtest.checkers import Checkers
from alipes.loadtest.comparison import Candidate, Comparison
from alipes.loadtest.interrupted import Interrupted
from alipes.loadtest.measure import Measuring, prepare, read_window, running, warmed_up
from alipes.loadtest.mix import Share
from alipes.loadtest.pace import Closed, Open, Pace
from alipes.loadtest.ratio import MIN_ROUNDS
from alipes.loadtest.window import Window

__all__ = ["compare"]

_ONE_CALLER = Closed(1)


@dataclass(frozen=True)
class _Side:
    requests: LoadTestRequests
    windows: list[Window]
    checkers: Checkers


def compare(  # noqa: PLR0913  # what a comparison is, by name
    first: Candidate,
    second: Candidate,
    pace: Pace = _ONE_CALLER,
    *,
    rounds: int = 10,
    measuring: Measuring | None = None,
    headers: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    each_round: Callable[[Comparison], None] = lambda comparison: None,
) -> Comparison:
    """Loads two candidates in turn: a window each in every round, and the order swapped from round to round.

    What changes slowly, such as a machine that gets warm, meets both alike, and being second has no share in the
    ratios. Random arrivals are the same for both in a round, and others in the next.

    Args:
        first: What the ratios are relative to.
        second: What is compared with it.
        pace: The load of both.
        rounds: How many; at least four, and more make the intervals narrower.
        measuring: Its window, warm-up, threads, checks and error budget count here; by default windows of a second.
        headers: Of each request.
        tls: How connections are encrypted.
        each_round: Called after each round with what was seen so far.

    Returns:
        Both sides' windows, their ratios with 95 % intervals, and what can be concluded from them.

    Raises:
        ConfigError: If there are too few rounds, or the requests cannot be made.
        AlipesError: If a server is not there, or does not know the model.
        Interrupted: After Ctrl-C, with what was measured until then as its `result`.

    Units: rates in requests per second, latencies in milliseconds; a ratio is the second one's figure over the first's.

    Examples:
        >>> http = Candidate("HTTP", "http://localhost:8000", "double")
        >>> grpc = Candidate("gRPC", "grpc://localhost:8001", "double")
        >>> seen = compare(http, grpc, Closed(4), rounds=4, measuring=Measuring(window_s=0.1, warm_up_s=0.05))
        >>> seen.rounds, seen.rate.low <= seen.rate.value <= seen.rate.high
        (4, True)
        >>> len(seen.conclusions()) >= 5  # of the rate, and of four percentiles
        True
    """
    if rounds < MIN_ROUNDS:
        raise ConfigError(f"rounds is {rounds}: at least {MIN_ROUNDS} are needed to see a spread", key="rounds")
    how = measuring or Measuring()
    candidates = (first, second)
    sides = [
        _Side(
            prepare(one.requests, one.address, headers, tls),
            [],
            Checkers.of([Share(one.requests)], how.check, one.address, tls),
        )
        for one in candidates
    ]
    comparison = Comparison(candidates, pace, (sides[0].windows, sides[1].windows), how.threads)
    try:
        for number in range(rounds):
            _round(sides, pace, number, how)
            each_round(comparison)
            if any(side.windows[-1].failed > how.error_budget * _sent(side.windows[-1]) for side in sides):
                break
    except KeyboardInterrupt:
        raise Interrupted(comparison) from None
    return comparison


def _round(sides: Sequence[_Side], pace: Pace, number: int, measuring: Measuring) -> None:
    """A window of each; the order is swapped from round to round."""
    shaped = _of_round(pace, number)
    for side in sides if number % 2 == 0 else reversed(sides):
        side.windows.append(_window(side, shaped, measuring))


def _of_round(pace: Pace, number: int) -> Pace:
    if isinstance(pace, Open) and pace.seed is not None:
        return replace(pace, seed=pace.seed + number)
    return pace


def _window(side: _Side, pace: Pace, measuring: Measuring) -> Window:
    with running(side.requests, pace, measuring, side.checkers.samples) as engine:
        begun = warmed_up(engine, measuring)
        engine.wait(measuring.window_s)
        return read_window(engine, begun, side.checkers)


def _sent(window: Window) -> int:
    return window.failed + window.answers

"""Loads two servers, or two models, in turn, and says by how much they differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from alipes._core import LoadTestRequests
from alipes.client import Tls
from alipes.errors import ConfigError
from alipes.loadtest.comparison import Candidate, Comparison
from alipes.loadtest.measure import Measuring, prepare, running
from alipes.loadtest.pace import Closed, Open, Pace
from alipes.loadtest.ratio import MIN_ROUNDS
from alipes.loadtest.window import Window

__all__ = ["compare"]

_ONE_CALLER = Closed(1)


@dataclass(frozen=True)
class _Side:
    requests: LoadTestRequests
    windows: list[Window]


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
        pace: The load.
        rounds: How many; at least four.
        measuring: Its window, warm-up, threads and error budget count here.
        headers: Of each request.
        tls: How connections are encrypted.
        each_round: Called after each with what was seen so far.

    Raises:
        ConfigError: If there are too few rounds, or the requests cannot be made.
        AlipesError: If a server is not there, or does not know the model.
    """
    if rounds < MIN_ROUNDS:
        raise ConfigError(f"rounds is {rounds}: at least {MIN_ROUNDS} are needed to see a spread", key="rounds")
    how = measuring or Measuring()
    candidates = (first, second)
    sides = [_Side(prepare(one.requests, one.address, headers, tls), []) for one in candidates]
    comparison = Comparison(candidates, pace, (sides[0].windows, sides[1].windows), how.threads)
    for number in range(rounds):
        shaped = _of_round(pace, number)
        for side in sides if number % 2 == 0 else reversed(sides):
            side.windows.append(_window(side.requests, shaped, how))
        each_round(comparison)
        if any(side.windows[-1].failed > how.error_budget * _sent(side.windows[-1]) for side in sides):
            break
    return comparison


def _of_round(pace: Pace, number: int) -> Pace:
    if isinstance(pace, Open) and pace.seed is not None:
        return replace(pace, seed=pace.seed + number)
    return pace


def _window(requests: LoadTestRequests, pace: Pace, measuring: Measuring) -> Window:
    with running(requests, pace, measuring) as engine:
        engine.wait(measuring.warm_up_s)
        engine.cut()
        begun = time.perf_counter()
        engine.wait(measuring.window_s)
        record, end = engine.cut(), time.perf_counter()
    return Window.read(record, end - begun)


def _sent(window: Window) -> int:
    return window.failed + window.answers

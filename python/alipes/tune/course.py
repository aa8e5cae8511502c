"""The way of a search: what it proposes is checked, looked up, or tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from alipes.tune.goal import FAILED, Goal
from alipes.tune.history import History
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point
from alipes.tune.possible import Checks
from alipes.tune.results import Rejected
from alipes.tune.search.base import Search
from alipes.tune.trials import Trials

__all__ = ["Course"]

_CONFIRMED: Final = 3
"""The leading point needs so many trials: the best of many noisy figures is partly luck. Where the mean falls behind,
another one leads."""
_NARROW: Final = 0.05
"""Where a limit is kept by no more than this (the logarithm of the ratio), keeping it is partly luck too:"""
_CONFIRMED_NARROWLY: Final = 6
"""so many trials it takes then."""


@dataclass
class Course:
    """The way of a search: what it may try, what it tried."""

    trials: Trials
    checks: Checks
    goal: Goal
    history: History
    each: Callable[[Outcome | Rejected], None]
    rejected: list[Rejected] = field(default_factory=list)
    interrupted: bool = False
    _seen: dict[Point, None] = field(default_factory=dict)
    _count: int = 0

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ends the block at an interrupt, which is noted."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    def follow(self, search: Search, most: int) -> bool:
        """Tries what a search proposes, until it has nothing more or there were enough trials.

        A point that it proposes once more is tried once more.

        Returns:
            Whether it may have something more.
        """
        while self._count < most:
            if (point := search.propose()) is None:
                return False
            self._teach(search, point, self.try_point(point, again=point in self._seen))
        return True

    def confirm(self, search: Search, most: int) -> None:
        """Tries the leading point again, until one leads by the mean of several trials; then the search goes on.

        Args:
            search: Learns from these trials too, and proposes the points of what is left over.
            most: Most trials, those before included.
        """
        goes_on = True
        while self._count < most and (leader := self.best()) is not None:
            if leader.repeats < self._needed(leader):
                self._teach(search, leader.point, self.try_point(leader.point, again=True))
            elif goes_on and most - self._count >= _CONFIRMED:
                goes_on = self.follow(search, self._count + 1)
            else:
                return

    def _needed(self, leader: Outcome) -> int:
        """How many trials the leader has to have."""
        is_narrow = 0 < abs(self.goal.rank(leader.figures).margin) < _NARROW
        return _CONFIRMED_NARROWLY if is_narrow else _CONFIRMED

    def _teach(self, search: Search, point: Point, outcome: Outcome | None) -> None:
        search.learn(point, FAILED if outcome is None or outcome.failure else self.goal.rank(outcome.figures))

    def try_point(self, point: Point, *, again: bool = False) -> Outcome | None:
        """Tries a point, unless its outcome is known; `None` where it is impossible."""
        if reason := self.checks.reason(point):
            self.rejected.append(Rejected(point, reason))
            self.each(self.rejected[-1])
            return None
        outcome = self._known(point)
        if outcome is None or again:
            made = self.trials.run(point)
            priced = replace(made, figures={**made.figures, **self.goal.costs(made.figures.get("rate", math.nan))})
            self.history.add(made)
            self.each(priced)
        self._count += again or point not in self._seen
        self._seen[point] = None
        return self._known(point)

    def best(self) -> Outcome | None:
        """The best so far."""
        return next(iter(self._ranked()), None)

    def outcomes(self) -> list[Outcome]:
        """All that were tried, in their order."""
        return [outcome for outcome in map(self._known, self._seen) if outcome is not None]

    def _known(self, point: Point) -> Outcome | None:
        """What the history says, with the costs of this goal."""
        outcome = self.history.find(point)
        if outcome is None:
            return None
        return replace(outcome, figures={**outcome.figures, **self.goal.costs(outcome.figures.get("rate", math.nan))})

    def _ranked(self) -> list[Outcome]:
        good = [outcome for outcome in self.outcomes() if not outcome.failure]
        return sorted(good, key=lambda outcome: self.goal.rank(outcome.figures), reverse=True)

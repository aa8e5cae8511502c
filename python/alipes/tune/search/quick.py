"""Learning: each trial tells which of the other points is likely to be the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from alipes.tune.goal import FAILED, Rank
from alipes.tune.point import Point
from alipes.tune.search.places import Place, Places
from alipes.tune.search.surface import Array, Belief, Surface
from alipes.tune.space import Space

__all__ = ["Quick"]

_SHARE_OF_FIRST: Final = 12
"""One more than there are axes are the first trials, which are far from each other; up to one more than twice as many
where that is no more than this share of all points."""
_NEAR_BEST: Final = 3
"""In a large space the neighbours of so many of the best places are looked at."""
_MOST_TRIALS: Final = 6
"""A point that promises something is proposed so often, since a single trial may have been unlucky."""
_EVERY: Final = 3
"""Every so many trials a place next to the best one is tried, if it may be better at all. What was seen far away can
hide from the surfaces that a single step brings much; without these trials, one of five searches of a recorded sweep
stays at half of the best throughput."""
_FAILURE_REACH: Final = 0.25
"""Over which share of an axis a failed trial makes others likely to fail."""
_LEAST_GAIN: Final = 1e-4
"""Where no place promises so much, in nats, the next one is that which is best if all goes well:"""
_HOPE: Final = 3.0
"""so many standard deviations better than expected."""


class Quick:
    """Finds good points with few trials.

    The first trials are far from each other. From then on two surfaces are fitted to what was seen: the score, and the
    margin of the limits. Next is the point with the greatest gain on average: by how much it is better than the best,
    times the chance that it keeps all limits and does not fail. As long as no point keeps all limits, the gain is that
    of the margin. So a point that misses a limit by little teaches where the limit lies, and is no dead end.
    """

    def __init__(self, space: Space, begin: Point | None = None, seed: int = 0) -> None:
        """Begins at a point, such as the present configuration, and in the middle of the space.

        Args:
            space: Where to search.
            begin: Where to begin.
            seed: For what is drawn.
        """
        self._space = space
        self._places = Places(space, seed)
        self._turn = 0
        self._known: dict[Place, Rank] = {}
        self._trials: dict[Place, int] = {}
        self._score, self._margin = Surface(self._places.width), Surface(self._places.width)
        axes = len(space.axes)
        self._first = 1 + max(axes, min(2 * axes, space.size // _SHARE_OF_FIRST))
        self._walk = self._proposals(space.places(begin) if begin is not None else None)

    def propose(self) -> Point | None:
        """The next point; a known one where its trial may have been unlucky."""
        place = next(self._walk, None)
        return None if place is None else self._space.at(place)

    def learn(self, point: Point, rank: Rank) -> None:
        """Takes how good a point was, by all its trials."""
        place = self._space.places(point)
        self._known[place] = rank
        self._trials[place] = self._trials.get(place, 0) + 1

    def _proposals(self, begin: Place | None) -> Iterator[Place]:
        if begin is not None:
            yield begin
        if self._places.middle not in self._known:
            yield self._places.middle
        while len(self._known) < self._space.size:
            seen = [place for place, rank in self._known.items() if rank > FAILED]
            best = sorted(seen, key=self._known.__getitem__, reverse=True)[:_NEAR_BEST]
            candidates = self._places.unknown(self._known, best)
            if len(seen) < self._first:
                yield self._places.farthest(candidates, list(self._known))
            else:
                yield self._promising(candidates, seen)

    def _promising(self, candidates: Sequence[Place], seen: Sequence[Place]) -> Place:
        """The candidate or known place with the greatest gain."""
        score, margin = self._beliefs(candidates, seen)
        unknown, known = slice(None, len(candidates)), slice(len(candidates), None)
        # What is to be beaten is the best by its own trials, since by these one is chosen in the end.
        leader = max(seen, key=self._known.__getitem__)
        best = self._known[leader]
        gain: Array
        if best.compliance == 0:
            gain = score.gain(best.score) * margin.above_zero()
            hope: Array = np.where(margin.best_case(_HOPE) > 0, score.best_case(_HOPE), -np.inf)
        else:
            gain = margin.gain(best.margin)
            hope = margin.best_case(_HOPE)
        gain[unknown] *= 1 - self._failing(candidates)
        gain[known] *= np.array([self._trials[place] < _MOST_TRIALS for place in seen])
        self._turn += 1
        if best.compliance == 0 and self._turn % _EVERY == 0:
            may_be_better = score.best_case(_HOPE) > best.score
            beside = [self._places.are_neighbours(place, leader) for place in candidates]
            near = np.flatnonzero(may_be_better[unknown] & beside)
            if near.size:
                return candidates[max(near.tolist(), key=lambda at: (gain[at], hope[at]))]
        if gain.max() < _LEAST_GAIN:
            return candidates[int(np.argmax(hope[unknown]))]
        return [*candidates, *seen][int(np.argmax(gain))]

    def _beliefs(self, candidates: Sequence[Place], seen: Sequence[Place]) -> tuple[Belief, Belief]:
        """Score and margin, at the candidates and behind them at the known places."""
        places, elsewhere = self._places.vectors(seen), self._places.vectors(candidates)
        trials = np.array([self._trials[place] for place in seen], float)
        scores = np.array([self._known[place].score for place in seen])
        margins = np.array([self._known[place].margin for place in seen])
        score = self._score.believe(places, scores, elsewhere, trials)
        if not margins.any():  # there is no limit
            return score, Belief(np.ones(len(score.mean)), np.full(len(score.mean), 1e-6))
        return score, self._margin.believe(places, margins, elsewhere, trials)

    def _failing(self, candidates: Sequence[Place]) -> Array:
        """The probability that a trial fails, by those near by."""
        failed = np.array([rank == FAILED for rank in self._known.values()], float)
        if not failed.any():
            return np.zeros(len(candidates))
        elsewhere, known = self._places.vectors(candidates), self._places.vectors(list(self._known))
        near = np.exp(-0.5 * (((elsewhere[:, None] - known[None]) / _FAILURE_REACH) ** 2).sum(2))
        shares: Array = (near @ failed) / (near.sum(1) + 0.5)
        return shares

"""Optuna's samplers as a search; needs the extra `tune`."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any, Final

from alipes.errors import Unsupported
from alipes.tune.goal import FAILED, Rank
from alipes.tune.point import Point
from alipes.tune.space import Space

__all__ = ["Optuna"]

_MISSED: Final = 1000.0
"""What a missed limit weighs beside scores. Both are logarithms: one per cent outweighs a factor of 20,000."""
_IN_VAIN: Final = 20
"""Samples in a row that are known already, after which a point is drawn at random: a sampler that is sure of the best
point draws it for ever."""


class Optuna:
    """Proposes what a sampler of optuna draws: by default one that models good and bad points (TPE)."""

    def __init__(self, space: Space, begin: Point | None = None, seed: int = 0, sampler: Any = None) -> None:
        """Begins at a point, such as the present configuration.

        Args:
            space: Where to search.
            begin: Where to begin.
            seed: Of the default sampler.
            sampler: One of `optuna.samplers`.

        Raises:
            Unsupported: If optuna is not installed.
        """
        try:
            optuna: Any = import_module("optuna")
        except ImportError as error:
            raise Unsupported("the search needs optuna: install it with `pip install 'alipes[tune]'`") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._failed = optuna.trial.TrialState.FAIL
        self._made = optuna.trial.create_trial
        self._study = optuna.create_study(
            direction="maximize",
            sampler=sampler if sampler is not None else optuna.samplers.TPESampler(seed=seed),
        )
        self._ranges = {
            f"{axis.model}.{axis.knob}": optuna.distributions.IntDistribution(0, len(axis.values) - 1)
            for axis in space.axes
        }
        self._random = Random(seed)
        self._open: dict[Point, Any] = {}
        self._known: dict[Point, float | None] = {}
        if begin is not None:
            self._study.enqueue_trial(dict(zip(self._ranges, space.places(begin), strict=True)))

    def propose(self) -> Point | None:
        """What the sampler draws; points that are known are answered without a trial. None where all are known."""
        if len(self._known) >= self._space.size:
            return None
        drawn = 0
        while True:
            trial = self._study.ask(self._ranges)
            point = self._space.at([trial.params[name] for name in self._ranges])
            if point not in self._known:
                self._open[point] = trial
                return point
            self._finish(trial, self._known[point])
            drawn += 1
            if drawn >= _IN_VAIN:
                self._study.enqueue_trial(
                    {name: self._random.randint(0, one.high) for name, one in self._ranges.items()}
                )

    def learn(self, point: Point, rank: Rank) -> None:
        """Passes it on; a point that was tried once more counts once more."""
        self._known[point] = value = None if rank == FAILED else rank.score + _MISSED * rank.compliance
        if point in self._open:
            self._finish(self._open.pop(point), value)
        elif value is not None:
            places = dict(zip(self._ranges, self._space.places(point), strict=True))
            self._study.add_trial(self._made(params=places, distributions=self._ranges, value=value))

    def _finish(self, trial: Any, value: float | None) -> None:
        if value is None:
            self._study.tell(trial, state=self._failed)
        else:
            self._study.tell(trial, value)

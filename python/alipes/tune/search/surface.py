"""What is likely between the points that were tried: a Gaussian process over the places of a space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Belief", "Surface"]

Array: TypeAlias = NDArray[np.floating[Any]]

_LENGTHS: Final = (0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0)
"""Over which share of an axis a figure changes: a length of 10 means that it hardly depends on the axis."""
_NOISES: Final = (0.01, 0.03, 0.1, 0.3)
"""Standard deviations of repeated trials, in shares of the spread of all."""
_LEAST_NOISE: Final = 0.02
"""Standard deviation of repeated trials in nats, at least: shares of rates and latencies, which no machine repeats."""
_FIRST_LENGTH: Final = 1.2
_FIRST_NOISE: Final = 0.1
_LENGTH_PRIOR: Final = (1.0, 1.0)
_NOISE_PRIOR: Final = (-2.5, 1.0)
"""Mean and standard deviation of the logarithms of both, in nats, before anything is known."""
_ROUNDS: Final = 2
"""So often all lengths and the noise are looked through, one after the other."""
_REFIT: Final = 1.15
"""They are looked for again when there are so many times as many points."""
_LEAST_VARIANCE: Final = 1e-6
"""In shares of the spread of all: nothing is certain."""
_JITTER: Final = 1e-8
"""Keeps equal places from making the covariance singular."""


@dataclass(frozen=True)
class Belief:
    """What is believed of a figure at some places: normal distributions.

    Attributes:
        mean: The expected values.
        deviation: Their standard deviations.
    """

    mean: Array
    deviation: Array

    def best_case(self, deviations: float) -> Array:
        """So many standard deviations above what is expected."""
        return self.mean + deviations * self.deviation

    def above_zero(self) -> Array:
        """The probability that each is."""
        return _below(self.mean / self.deviation)

    def gain(self, best: float) -> Array:
        """By how much each is above a value on average, where what is below it counts for nothing."""
        over = (self.mean - best) / self.deviation
        density = np.exp(-0.5 * over**2) / (2 * math.pi) ** 0.5
        gain: Array = (self.mean - best) * _below(over) + self.deviation * density
        return gain


class Surface:
    """One figure over a space, from noisy trials at some of its points."""

    def __init__(self, width: int) -> None:
        """Knows nothing yet.

        Args:
            width: How many coordinates a place has.
        """
        self._settings = [*[_FIRST_LENGTH] * width, _FIRST_NOISE]
        self._choices = [*[_LENGTHS] * width, _NOISES]
        self._fitted_at = 0

    def believe(self, places: Array, values: Array, elsewhere: Array, trials: Array) -> Belief:
        """What is to be expected at some places, and behind them at those of the trials.

        Args:
            places: Of the trials, `[known, axes]`.
            values: What they gave, `[known]`.
            elsewhere: Other places, `[elsewhere, axes]`.
            trials: How many each value is the mean of, `[known]`.

        Returns:
            Of `[elsewhere + known]`. At the known places it is what their own trials say together with all others: of
            few trials each is partly luck. Elsewhere the deviations have the noise in them, since the best
            configuration may stand out from all that are near it.
        """
        centre, spread = float(np.mean(values)), float(np.std(values)) or 1.0
        scaled = (values - centre) / spread
        if len(values) >= self._fitted_at * _REFIT:
            self._fit(places, scaled, trials)
        settings = [*self._settings[:-1], max(self._settings[-1], _LEAST_NOISE / spread)]
        factor, amplitude, weights = _solved(places, scaled, trials, settings)
        across = _covariance(np.concatenate([elsewhere, places]), places, settings)
        variance = np.maximum(1 - np.sum(np.linalg.solve(factor, across.T) ** 2, axis=0), _LEAST_VARIANCE)
        variance[: len(elsewhere)] += settings[-1] ** 2
        return Belief(centre + spread * (across @ weights), spread * np.sqrt(amplitude * variance))

    def _fit(self, places: Array, scaled: Array, trials: Array) -> None:
        """Looks for the lengths and the noise that explain best what was seen, one after the other."""
        self._fitted_at = len(scaled)
        best = _evidence(places, scaled, trials, self._settings)
        for _ in range(_ROUNDS):
            for at, choices in enumerate(self._choices):
                for choice in choices:
                    changed = [*self._settings[:at], choice, *self._settings[at + 1 :]]
                    evidence = _evidence(places, scaled, trials, changed)
                    if evidence > best:
                        best, self._settings = evidence, changed


def _evidence(places: Array, scaled: Array, trials: Array, settings: Sequence[float]) -> float:
    """The logarithm of the probability of what was seen, and of the settings: the lengths, behind them the noise."""
    factor, amplitude, _ = _solved(places, scaled, trials, settings)
    seen = -0.5 * len(scaled) * np.log(amplitude) - np.sum(np.log(np.diag(factor)))
    logarithms = np.log(settings)
    return float(seen + _prior(logarithms[:-1], *_LENGTH_PRIOR) + _prior(logarithms[-1:], *_NOISE_PRIOR))


def _prior(logarithms: Array, mean: float, deviation: float) -> float:
    return float(-0.5 * np.sum(((logarithms - mean) / deviation) ** 2))


def _solved(places: Array, scaled: Array, trials: Array, settings: Sequence[float]) -> tuple[Array, float, Array]:
    """The Cholesky factor of the covariance, how far values go, and the weights of the trials."""
    noise = np.diag(settings[-1] ** 2 / trials + _JITTER)
    factor = np.linalg.cholesky(_covariance(places, places, settings) + noise)
    half = np.linalg.solve(factor, scaled)
    # one observation of 1, so that a few equal values do not make it certain that all are
    amplitude = float((half @ half + 1.0) / (len(scaled) + 1.0))
    return factor, amplitude, np.linalg.solve(factor.T, half)


def _covariance(first: Array, second: Array, settings: Sequence[float]) -> Array:
    """Matérn's with 5/2: smooth, with bends."""
    lengths = np.array(settings[:-1])
    a, b = first / lengths, second / lengths
    squared = np.maximum(np.sum(a**2, 1)[:, None] + np.sum(b**2, 1)[None] - 2 * a @ b.T, 0.0)
    distance = np.sqrt(5 * squared)
    covariance: Array = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return covariance


def _below(deviations: Array) -> Array:
    """The share of a normal distribution that is below so many standard deviations."""
    shares: Array = 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(deviations / 2**0.5))
    return shares

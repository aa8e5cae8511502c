"""A day of requests for texts, compressed: when each comes, and how long its text is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Groups:
    """Requests that come together."""

    #: Groups in a second, at even spans.
    rate: float
    #: Requests of each.
    requests: int
    #: Seconds over which they come.
    over_s: float


@dataclass(frozen=True)
class Phase:
    """How requests come for a while."""

    seconds: float
    #: Milliseconds that the model needs for a batch with such a text, without those for each row.
    text_ms: float
    #: Requests in a second, at even spans.
    even: float = 0.0
    #: Requests in a second at its beginning and at its end, which know nothing of each other (Poisson).
    random: tuple[float, float] = (0.0, 0.0)
    groups: Groups | None = None


@dataclass(frozen=True)
class Arrivals:
    """Requests in the order of their moments."""

    #: Seconds since the day began; shape `[N]`.
    moments_s: Numbers
    #: Milliseconds of their texts; shape `[N]`.
    texts_ms: Numbers

    def until(self, seconds: float) -> "Arrivals":
        """Those of the day's first seconds."""
        early = self.moments_s < seconds
        return Arrivals(self.moments_s[early], self.texts_ms[early])


#: The batch job of the night sends one long text after the other: whoever waits for company keeps it too long. In the
#: morning single users come, at noon and in the evening pages that ask for twelve short texts at once: whoever does not
#: wait for company answers the first of them, and the others too late.
DAY = (
    Phase(8, 33.0, even=20),
    Phase(6, 16.0, random=(5, 30)),
    Phase(14, 19.0, groups=Groups(10, 12, 0.008)),
    Phase(6, 16.0, random=(30, 15)),
    Phase(10, 19.0, groups=Groups(10, 12, 0.008)),
    Phase(10, 33.0, even=20),
)


def length_s(phases: Sequence[Phase] = DAY) -> float:
    """Seconds of a day."""
    return sum(phase.seconds for phase in phases)


def arrivals(seed: int, phases: Sequence[Phase] = DAY) -> Arrivals:
    """The requests of a day, the same for the same seed."""
    random = np.random.default_rng(seed)
    moments: list[Numbers] = []
    texts: list[Numbers] = []
    begin_s = 0.0
    for phase in phases:
        own = np.sort(np.concatenate([np.empty(0), *_moments(phase, random)]))
        # What comes at the very end of a phase counts to it.
        moments.append(begin_s + own.clip(max=phase.seconds))
        texts.append(np.full(len(own), phase.text_ms))
        begin_s += phase.seconds
    return Arrivals(np.concatenate(moments), np.concatenate(texts))


def _moments(phase: Phase, random: np.random.Generator) -> Iterator[Numbers]:
    if phase.even:
        yield _even(phase.even, phase.seconds)
    most = max(phase.random)
    if most:
        found = np.sort(random.uniform(0, phase.seconds, random.poisson(most * phase.seconds)))
        first, last = phase.random
        rates = first + (last - first) * found / phase.seconds
        yield found[random.uniform(0, most, len(found)) < rates]
    if phase.groups is not None:
        begins = np.repeat(_even(phase.groups.rate, phase.seconds), phase.groups.requests)
        yield begins + random.uniform(0, phase.groups.over_s, len(begins))


def _even(rate: float, seconds: float) -> Numbers:
    """Moments in the middles of equal spans."""
    return (np.arange(round(rate * seconds), dtype=np.float64) + 0.5) / rate

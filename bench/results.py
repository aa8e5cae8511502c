"""What a run found: the samples of each cell, and their ratios within each round."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.rows.row import CPU_US, Better, Facts, Sample, Target


@dataclass(frozen=True)
class Spread:
    """Figures of several rounds."""

    median: float
    least: float
    greatest: float


@dataclass
class RowResult:
    """The samples of a row's cells, one for each round (and piece of it)."""

    facts: Facts
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    #: When its run began, where that was an earlier one.
    date: str = ""

    def add(self, label: str, sample: Sample) -> None:
        """Keeps a sample of a cell."""
        self.samples.setdefault(label, []).append(sample)

    def figure(self, label: str) -> Spread:
        """A cell's own figure."""
        return _spread(self._rounds(label))

    def comparison(self, target: Target) -> Spread | None:
        """A target's ratio, or the figure where it is compared with a constant; None where a contender is missing."""
        if target.of not in self.samples:
            return None
        if target.against is None:
            return self.figure(target.of)
        if target.against not in self.samples:
            return None
        # Only figures of the same round are divided: what the machine did meanwhile happened to both.
        pairs = zip(self._rounds(target.of), self._rounds(target.against), strict=True)
        return _spread([one / other for one, other in pairs])

    def processor_time(self, target: Target) -> Spread | None:
        """What the other contender uses for a request, in multiples of what the target's own one does.

        None where one of them has no such figure.
        """
        if target.against is None:
            return None
        ours, theirs = self._processor_times(target.of), self._processor_times(target.against)
        if not ours or not theirs or not all((*ours, *theirs)):
            return None
        return _spread([other / one for one, other in zip(ours, theirs, strict=True)])

    def reached(self, target: Target) -> bool | None:
        """Whether the median keeps the bound; None where there is no bound or nothing to judge."""
        found = self.comparison(target)
        if found is None or target.bound is None:
            return None
        if self.facts.better is Better.MORE:
            return found.median >= target.bound
        return found.median <= target.bound

    def _processor_times(self, label: str) -> list[float]:
        """Microseconds for a request in each round; nothing where a sample lacks them."""
        details = [sample.detail.get(CPU_US) for sample in self.samples.get(label, [])]
        values = [value for value in details if isinstance(value, float)]
        return self._medians(values) if len(values) == len(details) else []

    def _rounds(self, label: str) -> list[float]:
        """A cell's figure in each round."""
        return self._medians([sample.value for sample in self.samples[label]])

    def _medians(self, values: Sequence[float]) -> list[float]:
        """From the pieces of all rounds to the median of each round."""
        step = 1 if self.facts.once else self.facts.pieces
        return [statistics.median(values[start : start + step]) for start in range(0, len(values), step)]


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))

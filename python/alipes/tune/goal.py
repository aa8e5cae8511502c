"""What a tuner is after: figures that should be large or small, and figures that have to keep a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Self

from alipes.config.nearest import nearest
from alipes.errors import ConfigError

__all__ = ["FIGURES", "Goal", "Limit", "Objective", "Rank"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that a trial measures.

    Attributes:
        name: As people type it.
        label: As a sentence says it.
        unit: Behind a number.
        more_is_better: Which way is good.
    """

    name: str
    label: str
    unit: str
    more_is_better: bool = False


FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure
    for figure in (
        Figure("rate", "throughput", "/s", more_is_better=True),
        Figure("mean_ms", "mean latency", " ms"),
        Figure("p50_ms", "median latency", " ms"),
        Figure("p90_ms", "90th percentile of the latency", " ms"),
        Figure("p95_ms", "95th percentile of the latency", " ms"),
        Figure("p99_ms", "99th percentile of the latency", " ms"),
        Figure("memory_mb", "memory", " MB"),
        Figure("cores", "processor time per second", " s"),
        Figure("cost", "cost of a million inferences", ""),
        Figure("cost_per_hour", "cost of the servers per hour", ""),
    )
}
"""Throughput is in inferences (rows) per second. The costs need the price of a server-hour, the last the demand too."""


def figure_of(metric: str) -> Figure:
    """The figure of a name, which may have a model in front: `resnet.p99_ms`.

    Raises:
        ConfigError: If there is none.
    """
    name = metric.rpartition(".")[2]
    if name not in FIGURES:
        close = nearest(name, FIGURES)
        raise ConfigError(
            f"there is no figure '{metric}': a trial measures {', '.join(FIGURES)}",
            key=metric,
            hint=f"did you mean '{close}'?" if close else None,
        )
    return FIGURES[name]


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure that should be as large, or as small, as can be.

    Attributes:
        metric: The figure's name; of a single model with that in front, `resnet.p99_ms`.
        weight: How much it counts beside others: of two with the same weight, half of one is worth twice the other.
    """

    metric: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Checks both.

        Raises:
            ConfigError: If there is no such figure, or the weight is not above 0.
        """
        figure_of(self.metric)
        if not 0 < self.weight < math.inf:
            raise ConfigError(
                f"the weight of '{self.metric}' is {self.weight}: expected a number above 0", key="weight"
            )

    def score(self, value: float) -> float:
        """How good a value is; only differences of it mean something."""
        sign = 1 if figure_of(self.metric).more_is_better else -1
        return sign * self.weight * math.log(max(value, 1e-12))


_LIMIT: Final = re.compile(r"\s*([\w.\-]+)\s*(<=|>=|<|>)\s*([0-9.eE+\-]+)\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that a figure has to keep.

    Attributes:
        metric: The figure's name; of a single model with that in front.
        bound: The limit.
        kind: Whether the figure may be at most or at least that.
    """

    metric: str
    bound: float
    kind: Literal["at most", "at least"]

    def __post_init__(self) -> None:
        """Checks them.

        Raises:
            ConfigError: If there is no such figure, or the limit is not above 0.
        """
        figure_of(self.metric)
        if not 0 < self.bound < math.inf:
            raise ConfigError(
                f"the limit of '{self.metric}' is {self.bound}: expected a number above 0", key=self.metric
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `p99_ms<=20` or `rate>=1000`.

        Raises:
            ConfigError: If it is neither.
        """
        match = _LIMIT.fullmatch(text)
        try:
            if match is not None:
                return cls(match[1], float(match[3]), "at most" if match[2].startswith("<") else "at least")
        except ValueError as error:
            if isinstance(error, ConfigError):
                raise
        raise ConfigError(f"'{text}' is no limit: expected p99_ms<=20 or rate>=1000", key=text)

    def margin(self, value: float) -> float:
        """By how much a value keeps the limit, as the logarithm of the ratio; below 0 where it misses it."""
        ratio = math.log(max(value, 1e-12) / self.bound)
        return -ratio if self.kind == "at most" else ratio

    def __str__(self) -> str:
        """For people."""
        figure = figure_of(self.metric)
        model = self.metric.rpartition(".")[0]
        return f"{figure.label}{f' of {model}' if model else ''} {self.kind} {self.bound:g}{figure.unit}"


class Rank(NamedTuple):
    """How good a point is: the greater one is better. A limit that is missed weighs more than any score.

    Attributes:
        compliance: 0 where all limits are kept, and below 0 by how far they are missed; `-inf` for a failed trial.
        score: The sum of the objectives.
        margin: By how far the limit that is nearest to being missed is kept, as the logarithm of the ratio; the
            compliance where one is missed, 0 where there is none. A search learns from it how near a limit is.
    """

    compliance: float
    score: float
    margin: float = 0.0


FAILED: Final = Rank(-math.inf, -math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a tuner is after.

    Attributes:
        objectives: What should be large or small; throughput by default.
        limits: What has to be kept, all of it.
        server_hour_price: What a server costs for an hour, in any currency.
        demand: Inferences per second that have to be served, for `cost_per_hour`: by as many servers as it takes.
        alternatives: Groups of limits, of which one has to be kept whole, besides `limits`; none by default.
    """

    objectives: tuple[Objective, ...] = field(default_factory=lambda: (Objective("rate"),))
    limits: tuple[Limit, ...] = ()
    server_hour_price: float | None = None
    demand: float | None = None
    alternatives: tuple[tuple[Limit, ...], ...] = ()

    def __post_init__(self) -> None:
        """Checks that costs can be counted.

        Raises:
            ConfigError: If there is no objective, an alternative has no limit, or a cost lacks its price or its demand.
        """
        if not self.objectives:
            raise ConfigError("there is no objective: name a figure that should be large or small", key="objectives")
        if not all(self.alternatives):
            raise ConfigError("an alternative has no limit, so that anything keeps it: name one", key="alternatives")
        for value, name in ((self.server_hour_price, "server_hour_price"), (self.demand, "demand")):
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} is {value}: expected a number above 0", key=name)
        names = {metric.rpartition(".")[2] for metric in self.metrics}
        if names & {"cost", "cost_per_hour"} and self.server_hour_price is None:
            raise ConfigError(
                "a cost needs the price of a server-hour: give it, --server-hour on a command line",
                key="server_hour_price",
            )
        if "cost_per_hour" in names and self.demand is None:
            raise ConfigError(
                "the cost per hour needs the demand, in inferences per second: give it, --demand on a command line",
                key="demand",
            )

    @property
    def metrics(self) -> list[str]:
        """The figures that count, each once."""
        limits = [*self.limits, *(limit for group in self.alternatives for limit in group)]
        return list(dict.fromkeys([*(one.metric for one in self.objectives), *(one.metric for one in limits)]))

    def costs(self, rate: float) -> dict[str, float]:
        """What a throughput costs."""
        if self.server_hour_price is None or not rate > 0:
            return {}
        costs = {"cost": self.server_hour_price / (rate * 3600) * 1e6}
        if self.demand is not None:
            costs["cost_per_hour"] = self.server_hour_price * math.ceil(self.demand / rate)
        return costs

    def rank(self, figures: Mapping[str, float]) -> Rank:
        """How good figures are; a figure that is missing or is no number fails."""
        if any(not math.isfinite(figures.get(metric, math.nan)) for metric in self.metrics):
            return FAILED
        score = sum(objective.score(figures[objective.metric]) for objective in self.objectives)
        margin = _margin(self.limits_for(figures), figures)
        return Rank(min(margin, 0.0), score, margin)

    def limits_for(self, figures: Mapping[str, float]) -> tuple[Limit, ...]:
        """The limits that count for figures: all of `limits`, and the alternative that they come nearest to."""
        if not self.alternatives:
            return self.limits
        groups = [(*self.limits, *group) for group in self.alternatives]
        return max(groups, key=lambda group: _margin(group, figures))

    def missed(self, figures: Mapping[str, float]) -> list[Limit]:
        """The limits that figures do not keep, of those that count for them."""
        return [limit for limit in self.limits_for(figures) if limit.margin(figures.get(limit.metric, math.nan)) < 0]

    def limits_text(self) -> str:
        """All limits for people; empty where there are none."""
        groups = [" and ".join(map(str, group)) for group in self.alternatives]
        return ", ".join([*map(str, self.limits), *(["either " + ", or ".join(groups)] if groups else [])])


def _margin(limits: Sequence[Limit], figures: Mapping[str, float]) -> float:
    """By how far the limit nearest to being missed is kept; where some are missed, all that they miss, below 0."""
    margins = [limit.margin(figures.get(limit.metric, math.nan)) for limit in limits]
    missed = sum(margin for margin in margins if margin < 0)
    return missed if missed < 0 else min(margins, default=0.0)

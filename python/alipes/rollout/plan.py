"""What a rollout does: which version replaces which, by which steps, and what is tolerated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from alipes.errors import ConfigError
from alipes.rollout.verdict import Tolerance
from alipes.types import Shadow

__all__ = ["DEFAULT_STEPS", "CanaryPlan", "Plan", "RolloutPlan"]

DEFAULT_STEPS = (1.0, 5.0, 25.0, 50.0)
"""Shares of the requests, in per cent, before the candidate has all of them."""

_PARTS = 10_000
"""Weights of a step add up to this, so that a share may have two decimals."""

V = TypeVar("V", int, str)


@dataclass(frozen=True, slots=True)
class Plan(Generic[V]):
    """A rollout of a model, wherever its versions are.

    Attributes:
        model: The model's name.
        stable: The version that serves.
        candidate: The version that is to replace it.
        steps: Shares of the requests that the candidate gets, in per cent, ascending; then it gets all.
        step_s: Longest time of a step in seconds; a good verdict ends it sooner.
        last_step_s: Longest time of the last step, which needs a good verdict.
        look_s: Seconds between two looks at the outcomes.
        tolerance: How much worse the candidate may be.
    """

    model: str
    stable: V
    candidate: V
    steps: tuple[float, ...] = DEFAULT_STEPS
    step_s: float = 60.0
    last_step_s: float = 600.0
    look_s: float = 5.0
    tolerance: Tolerance = field(default_factory=Tolerance)

    def __post_init__(self) -> None:
        """Checks the steps and times.

        Raises:
            ConfigError: If steps do not ascend between 0 and 100, a time is not above zero, or both versions are one.
        """
        if self.stable == self.candidate:
            raise ConfigError(f"version {self.stable} cannot replace itself", key="candidate", hint="name another one")
        ascending = all(before < after for before, after in zip(self.steps, self.steps[1:], strict=False))
        begins = bool(self.steps) and (self.steps[0] == 0 or self.steps[0] >= 100 / _PARTS)
        if not begins or not ascending or self.steps[-1] >= 100:
            raise ConfigError(
                f"steps must ascend from 0 or at least 0.01 to less than 100 per cent, got {list(self.steps)}",
                key="steps",
                hint="such as 1,5,25,50, or 0,1,5,25,50 to begin with copies of requests",
            )
        for name in ("step_s", "last_step_s", "look_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0 seconds", key=name, hint="give a longer time")

    def identity(self) -> dict[str, Any]:
        """By what a journal knows the rollout again."""
        return {"model": self.model, "stable": self.stable, "candidate": self.candidate, "steps": list(self.steps)}

    @property
    def looks(self) -> int:
        """The most looks that a rollout takes, of which each has its share of what may go wrong."""
        return math.ceil(((len(self.steps) - 1) * self.step_s + self.last_step_s) / self.look_s)


@dataclass(frozen=True, slots=True)
class RolloutPlan(Plan[int]):
    """A rollout of one version of a model inside servers.

    In a step of 0 the candidate is the shadow: it gets copies of all requests, and its answers go to nobody.

    Attributes:
        sticky_header: The header whose value keeps a caller on its version.
    """

    sticky_header: str | None = None

    def weights(self, share: float) -> dict[int, int]:
        """The weights that give the candidate this share, in per cent."""
        part = round(share * _PARTS / 100)
        return {self.stable: _PARTS - part, self.candidate: part}

    def shadow(self, share: float) -> Shadow | None:
        """The candidate in a step without requests of its own."""
        return Shadow(self.candidate) if share == 0 else None


@dataclass(frozen=True, slots=True)
class CanaryPlan(Plan[str]):
    """A rollout of a canary of KServe, whose versions are predictors, or with Knative revisions.

    Attributes:
        service: The InferenceService, with its namespace.
        digest: By what its models are known again.
        port: The port of the HTTP of its servers.
        headers: Headers of requests to its servers, such as one with a key.
    """

    service: str = ""
    digest: str = ""
    port: int = 8080
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the steps and times.

        Raises:
            ConfigError: As for other rollouts, and for a step that is no whole percentage of at least 1.
        """
        Plan.__post_init__(self)
        if any(share != round(share) or share < 1 for share in self.steps):
            raise ConfigError(
                f"KServe divides requests by whole percentages of at least 1, got {list(self.steps)}",
                key="steps",
                hint="such as 1,5,25,50",
            )

    def identity(self) -> dict[str, Any]:
        """By what a journal knows the rollout again."""
        return {**Plan.identity(self), "service": self.service, "digest": self.digest}

"""A rollout as it goes: weights are changed, outcomes judged, and the candidate is promoted or taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from alipes.rollout.journal import Journal
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.plan import RolloutPlan
from alipes.rollout.verdict import Judgement, Verdict, judge
from alipes.types import Shadow, TrafficSplit

__all__ = ["Look", "RolloutEnd", "Weighed", "run_rollout"]


class Weighed(Protocol):
    """A server whose versions have weights: `alipes.Client` over HTTP."""

    def traffic(self, model: str) -> TrafficSplit:
        """How requests are divided."""

    def set_traffic(
        self,
        model: str,
        weights: dict[int, int],
        *,
        sticky_header: str | None = None,
        shadow: Shadow | int | None = None,
    ) -> TrafficSplit:
        """Divides them otherwise."""

    def traffic_outcomes(self, model: str) -> dict[int, dict[str, object]]:
        """What became of them since."""


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a rollout at one moment.

    Attributes:
        share: What the candidate gets of the requests, in per cent.
        stable: Outcomes of the version that serves, of this step.
        candidate: Outcomes of the candidate, of this step.
        judgement: What they say.
        elapsed_s: Time since the step began, in seconds.
    """

    share: float
    stable: Outcomes
    candidate: Outcomes
    judgement: Judgement
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class RolloutEnd:
    """How a rollout ended.

    Attributes:
        promoted: The candidate has all requests now; else the stable version has them.
        reason: Why, in one sentence.
        last: The last look; `None` where it ended before one.
    """

    promoted: bool
    reason: str
    last: Look | None


def run_rollout(
    server: Weighed,
    plan: RolloutPlan,
    journal: Journal | None = None,
    watch: Callable[[Look], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> RolloutEnd:
    """Drives a rollout to its end. Whatever ends it, the candidate has all requests afterwards, or none.

    Args:
        server: A client of the server, over HTTP.
        plan: What is to be done.
        journal: Where events are noted; a rollout that was broken off goes on at its step.
        watch: Is called with every look.
        stop: Takes the candidate back when it is set.

    Raises:
        AlipesError: If the server cannot be asked; the candidate has been taken back if the server could still be told.
        ConfigError: If the journal holds another rollout.
    """
    return _Rollout(server, plan, journal or Journal(None), watch, stop or threading.Event()).run()


class _Rollout:
    def __init__(
        self,
        server: Weighed,
        plan: RolloutPlan,
        journal: Journal,
        watch: Callable[[Look], None],
        stop: threading.Event,
    ) -> None:
        self._server = server
        self._plan = plan
        self._journal = journal
        self._watch = watch
        self._stop = stop
        self._last: Look | None = None

    def run(self) -> RolloutEnd:
        resumed = self._journal.begin(self._plan)
        try:
            for share in self._plan.steps:
                if resumed is not None and share < resumed:
                    continue
                reason = self._step(share, resumed=share == resumed)
                if reason is not None:
                    return self._take_back(reason)
        except BaseException as error:
            self._take_back(f"the rollout was broken off: {error!r}")
            raise
        return self._promote()

    def _step(self, share: float, *, resumed: bool) -> str | None:
        """One step; why the candidate is to be taken back, or `None`."""
        plan = self._plan
        weights, shadow = plan.weights(share), plan.shadow(share)
        if not (resumed and self._is_divided(weights, shadow)):
            self._server.set_traffic(plan.model, weights, sticky_header=plan.sticky_header, shadow=shadow)
        self._journal.note("step", share=share)
        is_last = share == plan.steps[-1]
        began = time.monotonic()
        limit_s = plan.last_step_s if is_last else plan.step_s
        while True:
            if self._stop.wait(plan.look_s):
                return "the rollout was stopped"
            look = self._look(share, time.monotonic() - began)
            self._watch(look)
            if (reason := self._fault(look)) is not None:
                return reason
            over = look.elapsed_s >= limit_s
            if look.judgement.verdict is Verdict.GOOD or (over and not is_last):
                return None
            if over:
                return f"{look.candidate.requests} requests of the candidate are too few for a verdict"

    def _is_divided(self, weights: dict[int, int], shadow: Shadow | None) -> bool:
        split = self._server.traffic(self._plan.model)
        return dict(split.weights) == weights and split.shadow == shadow

    def _look(self, share: float, elapsed_s: float) -> Look:
        outcomes = self._server.traffic_outcomes(self._plan.model)
        none = {"answered": 0, "failed": 0, "latency_us": [], "samples": {}}
        versions = (self._plan.stable, self._plan.candidate)
        stable, candidate = (Outcomes.read(outcomes.get(version, none)) for version in versions)
        judgement = judge(stable, candidate, self._plan.tolerance, self._plan.looks)
        self._last = Look(share, stable, candidate, judgement, elapsed_s)
        self._journal.note(
            "look",
            share=share,
            requests=[stable.requests, candidate.requests],
            failed=[stable.failed, candidate.failed],
            verdict=str(judgement.verdict),
        )
        return self._last

    def _fault(self, look: Look) -> str | None:
        """Why the candidate is to be taken back at once, if it is."""
        serving = self._server.traffic(self._plan.model).versions
        if self._plan.candidate not in serving:
            return f"version {self._plan.candidate} does not serve any more"
        if look.judgement.verdict is not Verdict.WORSE:
            return None
        worst = next(finding for finding in look.judgement.findings if finding.verdict is Verdict.WORSE)
        return f"{worst.about}: worse by {worst.low:.2%} to {worst.high:.2%}, and {worst.tolerated:.2%} is tolerated"

    def _promote(self) -> RolloutEnd:
        plan = self._plan
        highest = max(self._server.traffic(plan.model).versions)
        weights = {} if highest == plan.candidate else {plan.candidate: 1}
        self._server.set_traffic(plan.model, weights)
        self._journal.note("promoted")
        return RolloutEnd(True, "no comparison found the candidate worse", self._last)

    def _take_back(self, reason: str) -> RolloutEnd:
        self._server.set_traffic(self._plan.model, {self._plan.stable: 1})
        self._journal.note("rolled back", reason=reason)
        return RolloutEnd(False, reason, self._last)

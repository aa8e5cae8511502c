"""A rollout as it goes: requests are divided anew, outcomes judged, and the candidate is promoted or taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from alipes.errors import AlipesError
from alipes.rollout.journal import PROMOTED, ROLLED_BACK, Journal, Resumed
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.plan import Plan
from alipes.rollout.verdict import Judgement, Verdict, judge

__all__ = ["Look", "Reading", "RolloutEnd", "RolloutTarget", "drive"]


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a rollout at one moment.

    Attributes:
        share: What the candidate gets of the requests, in per cent.
        stable: Outcomes of the version that serves, of this step.
        candidate: Outcomes of the candidate, of this step.
        judgement: What they say.
        elapsed_s: Time since the step began, in seconds.
        silent: Servers that did not answer this look, so that it is of the others.
    """

    share: float
    stable: Outcomes
    candidate: Outcomes
    judgement: Judgement
    elapsed_s: float
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutEnd:
    """How a rollout ended.

    Attributes:
        promoted: The candidate has all requests now; else the stable version has them.
        reason: Why, in one sentence.
        last: The last look; `None` where it ended before one.
        servers: All servers, by their addresses; of a cluster, the names of pods.
        unset: Those that the stable version could not be given all requests at, with the reason of each. Such a server
            has the weights of the last step, or none if it starts anew: then its highest version gets all requests.
    """

    promoted: bool
    reason: str
    last: Look | None
    servers: tuple[str, ...] = ()
    unset: Mapping[str, AlipesError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a target of a rollout says at a look.

    Attributes:
        stable: Outcomes of the version that serves, of this step.
        candidate: Outcomes of the candidate, of this step.
        silent: Errors of what should have answered and did not, by name.
        fault: Why the candidate is to be taken back whatever the outcomes say, if it is.
    """

    stable: Outcomes
    candidate: Outcomes
    silent: Mapping[str, AlipesError]
    fault: str | None = None


class RolloutTarget(Protocol):
    """What divides the requests between the two versions of a rollout, and counts their outcomes."""

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that there are now, by name."""

    def divide(self, share: float, *, resumed: bool) -> str | None:
        """Gives the candidate a share of the requests, in per cent, and begins to count; why it cannot, if it cannot.

        Args:
            share: The share of a step.
            resumed: The step had begun when the rollout was broken off, so that the share may be in force.
        """

    def read(self, share: float) -> Reading:
        """What became of the requests since the step with this share began."""

    def promote(self) -> str | None:
        """Gives the candidate all requests; why it cannot, if it cannot."""

    def take_back(self) -> Mapping[str, AlipesError]:
        """Gives the stable version all requests; the errors of what could not be set, by name."""


def drive(
    target: RolloutTarget,
    plan: Plan[Any],
    journal: Journal,
    watch: Callable[[Look], None],
    stop: threading.Event,
) -> RolloutEnd:
    """Drives a rollout to its end. Whatever ends it, the candidate has all requests afterwards, or none.

    Args:
        target: What divides the requests.
        plan: What is to be done.
        journal: Where events are noted; a rollout that was broken off goes on at its step.
        watch: Is called with every look.
        stop: Takes the candidate back when it is set.

    Raises:
        ConfigError: If the journal holds another rollout.
    """
    return _Rollout(target, plan, journal, watch, stop).run()


class _Rollout:
    def __init__(
        self,
        target: RolloutTarget,
        plan: Plan[Any],
        journal: Journal,
        watch: Callable[[Look], None],
        stop: threading.Event,
    ) -> None:
        self._target = target
        self._plan = plan
        self._journal = journal
        self._watch = watch
        self._stop = stop
        self._last: Look | None = None

    def run(self) -> RolloutEnd:
        resumed = self._journal.begin(self._plan, self._target.servers) or Resumed()
        if resumed.reason is not None:
            return self._take_back(resumed.reason)
        try:
            reason = self._steps(resumed)
            if reason is None:
                reason = self._target.promote()
        except BaseException as error:
            self._take_back(f"the rollout was broken off: {error!r}")
            raise
        if reason is not None:
            return self._take_back(reason)
        self._journal.note(PROMOTED)
        return RolloutEnd(True, "no comparison found the candidate worse", self._last, self._target.servers)

    def _steps(self, resumed: Resumed) -> str | None:
        """All steps from where the rollout goes on; why the candidate is to be taken back, or `None`."""
        for share in self._plan.steps:
            if resumed.share is not None and share < resumed.share:
                continue
            if (reason := self._step(share, resumed=share == resumed.share)) is not None:
                return reason
        return None

    def _step(self, share: float, *, resumed: bool) -> str | None:
        """One step; why the candidate is to be taken back, or `None`."""
        plan = self._plan
        if (reason := self._target.divide(share, resumed=resumed)) is not None:
            return reason
        self._journal.note("step", share=share, servers=list(self._target.servers))
        is_last = share == plan.steps[-1]
        began = time.monotonic()
        limit_s = plan.last_step_s if is_last else plan.step_s
        while True:
            if self._stop.wait(plan.look_s):
                return "the rollout was stopped"
            reading = self._target.read(share)
            look = self._look(reading, share, time.monotonic() - began)
            self._watch(look)
            if (reason := reading.fault or _verdict_against(look.judgement)) is not None:
                return reason
            over = look.elapsed_s >= limit_s
            if look.silent:
                continue  # until it answers, or is at fault
            if look.judgement.verdict is Verdict.GOOD or (over and not is_last):
                return None
            if over:
                return f"{look.candidate.requests} requests of the candidate are too few for a verdict"

    def _look(self, reading: Reading, share: float, elapsed_s: float) -> Look:
        stable, candidate = reading.stable, reading.candidate
        judgement = judge(stable, candidate, self._plan.tolerance, self._plan.looks)
        self._last = Look(share, stable, candidate, judgement, elapsed_s, tuple(reading.silent))
        self._journal.note(
            "look",
            share=share,
            requests=[stable.requests, candidate.requests],
            failed=[stable.failed, candidate.failed],
            verdict=str(judgement.verdict),
            silent={name: str(error) for name, error in reading.silent.items()},
        )
        return self._last

    def _take_back(self, reason: str) -> RolloutEnd:
        try:
            self._journal.note("taking back", reason=reason)
        finally:  # also where the disk is full
            unset = self._target.take_back()
        more = {"unset": {name: str(error) for name, error in unset.items()}} if unset else {}
        self._journal.note(ROLLED_BACK, reason=reason, **more)
        return RolloutEnd(False, reason, self._last, self._target.servers, unset)


def _verdict_against(judgement: Judgement) -> str | None:
    """Why the candidate is worse, if it is."""
    if judgement.verdict is not Verdict.WORSE:
        return None
    worst = next(finding for finding in judgement.findings if finding.verdict is Verdict.WORSE)
    return f"{worst.about}: worse by {worst.low:.2%} to {worst.high:.2%}, and {worst.tolerated:.2%} is tolerated"

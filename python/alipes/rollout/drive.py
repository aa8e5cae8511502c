"""A rollout as it goes: weights are changed, outcomes judged, and the candidate is promoted or taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from alipes.client.servers.addresses import with_reasons
from alipes.errors import AlipesError
from alipes.rollout.journal import Journal
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.plan import RolloutPlan
from alipes.rollout.servers import RolloutServers, State, Weighed, may_pass
from alipes.rollout.verdict import Judgement, Verdict, judge
from alipes.types import TrafficSplit

__all__ = ["Look", "RolloutEnd", "run_rollout"]

_MOST_MISSED: Final = 3
"""Looks in a row that a server may leave without an answer, and attempts to set it."""

_RETURN_TRIES: Final = 6
"""Attempts to give the stable version all requests again at one server: by default half a minute, for one that starts
anew."""


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
        servers: All servers, by their addresses.
        unset: Those that the stable version could not be given all requests at, with the reason of each. Such a server
            has the weights of the last step, or none if it starts anew: then its highest version gets all requests.
    """

    promoted: bool
    reason: str
    last: Look | None
    servers: tuple[str, ...] = ()
    unset: Mapping[str, AlipesError] = field(default_factory=dict)


def run_rollout(
    server: Weighed,
    plan: RolloutPlan,
    journal: Journal | None = None,
    watch: Callable[[Look], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> RolloutEnd:
    """Drives a rollout to its end. Whatever ends it, the candidate has all requests afterwards, or none.

    Of several servers, all have the same weights and are judged as one. Where one stops answering, starts anew or
    cannot be set, the candidate is taken back at all: it may be why.

    Args:
        server: A client of the server, or of several, over HTTP.
        plan: What is to be done.
        journal: Where events are noted; a rollout that was broken off goes on at its step.
        watch: Is called with every look.
        stop: Takes the candidate back when it is set.

    Raises:
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
        self._servers = RolloutServers(server, plan.model)
        self._plan = plan
        self._journal = journal
        self._watch = watch
        self._stop = stop
        self._last: Look | None = None
        self._divided: set[str] = set()
        self._missed: dict[str, int] = {}

    def run(self) -> RolloutEnd:
        resumed = self._journal.begin(self._plan, self._servers.addresses)
        try:
            for share in self._plan.steps:
                if resumed is not None and share < resumed:
                    continue
                reason = self._step(share, resumed=share == resumed)
                if reason is not None:
                    return self._take_back(reason)
            reason = self._promote()
        except BaseException as error:
            self._take_back(f"the rollout was broken off: {error!r}")
            raise
        if reason is not None:
            return self._take_back(reason)
        self._journal.note("promoted")
        return RolloutEnd(True, "no comparison found the candidate worse", self._last, self._servers.addresses)

    def _step(self, share: float, *, resumed: bool) -> str | None:
        """One step; why the candidate is to be taken back, or `None`."""
        plan = self._plan
        if (reason := self._divide(share, resumed=resumed)) is not None:
            return reason
        self._journal.note("step", share=share, servers=list(self._servers.addresses))
        is_last = share == plan.steps[-1]
        began = time.monotonic()
        limit_s = plan.last_step_s if is_last else plan.step_s
        while True:
            if self._stop.wait(plan.look_s):
                return "the rollout was stopped"
            state = self._servers.read()
            look = self._look(state, share, time.monotonic() - began)
            self._watch(look)
            if (reason := self._fault(state, share) or _verdict_against(look.judgement)) is not None:
                return reason
            over = look.elapsed_s >= limit_s
            if look.silent:
                continue  # until it answers, or is at fault
            if look.judgement.verdict is Verdict.GOOD or (over and not is_last):
                return None
            if over:
                return f"{look.candidate.requests} requests of the candidate are too few for a verdict"

    def _divide(self, share: float, *, resumed: bool) -> str | None:
        """Sets the weights of a step at all servers, unless they have them; why it cannot, or `None`."""
        if resumed:
            state = self._servers.read()
            if not state.failures and all(self._is_divided(split, share) for split in state.splits.values()):
                self._divided = set(state.splits)
                return None
        failures = self._insist(lambda only: self._set(share, only), _MOST_MISSED, may_pass)
        self._divided = set(self._servers.addresses)
        return f"not every server has the weights of {share:g} %: {_named(failures)}" if failures else None

    def _set(self, share: float, only: Collection[str]) -> dict[str, AlipesError]:
        plan = self._plan
        return self._servers.divide(plan.weights(share), plan.sticky_header, plan.shadow(share), only)

    def _is_divided(self, split: TrafficSplit, share: float) -> bool:
        return _weighed(split.weights) == _weighed(self._plan.weights(share)) and split.shadow == self._plan.shadow(
            share
        )

    def _look(self, state: State, share: float, elapsed_s: float) -> Look:
        versions = (self._plan.stable, self._plan.candidate)
        stable, candidate = (state.outcomes.get(version, Outcomes()) for version in versions)
        judgement = judge(stable, candidate, self._plan.tolerance, self._plan.looks)
        self._last = Look(share, stable, candidate, judgement, elapsed_s, tuple(state.failures))
        self._journal.note(
            "look",
            share=share,
            requests=[stable.requests, candidate.requests],
            failed=[stable.failed, candidate.failed],
            verdict=str(judgement.verdict),
            silent={name: str(error) for name, error in state.failures.items()},
        )
        return self._last

    def _fault(self, state: State, share: float) -> str | None:
        """Why the candidate is to be taken back whatever the requests say, if it is."""
        self._missed = {name: self._missed.get(name, 0) + 1 for name in state.failures}
        for name, error in state.failures.items():
            if not may_pass(error):
                return _named({name: error})
            if self._missed[name] == _MOST_MISSED:
                return f"a server left {_MOST_MISSED} looks without an answer: {_named({name: error})}"
        for name, split in state.splits.items():
            if name in self._divided and (reason := self._change(split, share)) is not None:
                return f"{reason} at {name}" if len(self._servers.addresses) > 1 else reason
        self._welcome(state, share)
        return None

    def _change(self, split: TrafficSplit, share: float) -> str | None:
        """What has changed at a server since the step began, if anything has."""
        if not split.weights:
            return "the weights are gone, as after a start of the server"
        if self._plan.candidate not in split.versions:
            return f"version {self._plan.candidate} does not serve any more"
        return None if self._is_divided(split, share) else "somebody else has changed the weights"

    def _welcome(self, state: State, share: float) -> None:
        """Divides the requests at servers that were added behind a name, as at the others; later if they still load."""
        added = [name for name in state.splits if name not in self._divided]
        failures = self._set(share, added) if added else {}
        self._divided.update(name for name in added if name not in failures)

    def _promote(self) -> str | None:
        """Gives the candidate all requests; why it cannot, or `None`."""
        failures = self._insist(lambda only: self._servers.promote(self._plan.candidate, only), _MOST_MISSED, may_pass)
        ours = {name: error for name, error in failures.items() if name in self._divided}
        return f"not every server could be given version {self._plan.candidate}: {_named(ours)}" if ours else None

    def _take_back(self, reason: str) -> RolloutEnd:
        def give(only: Collection[str]) -> dict[str, AlipesError]:
            return self._servers.divide({self._plan.stable: 1}, None, None, only)

        unset = self._insist(give, _RETURN_TRIES, lambda _: True)
        more = {"unset": {name: str(error) for name, error in unset.items()}} if unset else {}
        self._journal.note("rolled back", reason=reason, **more)
        return RolloutEnd(False, reason, self._last, self._servers.addresses, unset)

    def _insist(
        self,
        attempt: Callable[[Collection[str]], dict[str, AlipesError]],
        tries: int,
        may_repeat: Callable[[AlipesError], bool],
    ) -> dict[str, AlipesError]:
        """Makes a call at all servers, and again at those that failed; the errors of the last attempt."""
        failures = attempt(self._servers.addresses)
        for _ in range(tries - 1):
            if not failures or not all(map(may_repeat, failures.values())):
                break
            self._stop.wait(self._plan.look_s)
            failures = attempt(tuple(failures))
        return failures


def _verdict_against(judgement: Judgement) -> str | None:
    """Why the candidate is worse, if it is."""
    if judgement.verdict is not Verdict.WORSE:
        return None
    worst = next(finding for finding in judgement.findings if finding.verdict is Verdict.WORSE)
    return f"{worst.about}: worse by {worst.low:.2%} to {worst.high:.2%}, and {worst.tolerated:.2%} is tolerated"


def _weighed(weights: Mapping[int, int]) -> dict[int, int]:
    """The versions that have a weight."""
    return {version: weight for version, weight in weights.items() if weight}


def _named(failures: Mapping[str, AlipesError]) -> str:
    return with_reasons({name: f"{error}" for name, error in failures.items()})

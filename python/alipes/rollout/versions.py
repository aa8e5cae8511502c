"""A rollout between versions of a model inside servers, by their weights."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from alipes.errors import AlipesError
from alipes.rollout.drive import Look, Reading, RolloutEnd, drive
from alipes.rollout.journal import Journal
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.plan import RolloutPlan
from alipes.rollout.servers import MOST_MISSED, Missed, RolloutServers, State, Weighed, may_pass, named
from alipes.types import TrafficSplit

__all__ = ["run_rollout"]

_RETURN_TRIES: Final = 6
"""Attempts to give the stable version all requests again at one server: by default half a minute, for one that starts
anew."""

_RETURN_PAUSE_S: Final = 5.0
"""The longest pause between two of them: who has stopped a rollout waits for its end."""


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
    stop = stop or threading.Event()
    return drive(_WeighedVersions(server, plan, stop), plan, journal or Journal(None), watch, stop)


class _WeighedVersions:
    """The target of such a rollout."""

    def __init__(self, server: Weighed, plan: RolloutPlan, stop: threading.Event) -> None:
        self._servers = RolloutServers(server, plan.model)
        self._plan = plan
        self._stop = stop
        self._divided: set[str] = set()
        self._missed = Missed(may_pass)

    @property
    def servers(self) -> tuple[str, ...]:
        return self._servers.addresses

    def divide(self, share: float, *, resumed: bool) -> str | None:
        """Sets the weights of a step at all servers, unless they have them; why it cannot, or `None`."""
        if resumed:
            state = self._servers.read()
            if not state.failures and all(self._is_divided(split, share) for split in state.splits.values()):
                self._divided = set(state.splits)
                return None
        failures = self._insist(lambda only: self._set(share, only), MOST_MISSED, may_pass, self._wait)
        self._divided = set(self._servers.addresses)
        return f"not every server has the weights of {share:g} %: {named(failures)}" if failures else None

    def read(self, share: float) -> Reading:
        state = self._servers.read()
        versions = (self._plan.stable, self._plan.candidate)
        stable, candidate = (state.outcomes.get(version, Outcomes()) for version in versions)
        return Reading(stable, candidate, state.failures, self._fault(state, share))

    def promote(self) -> str | None:
        """Gives the candidate all requests; why it cannot, or `None`."""

        def give(only: Collection[str]) -> dict[str, AlipesError]:
            return self._servers.promote(self._plan.candidate, only)

        failures = self._insist(give, MOST_MISSED, may_pass, self._wait)
        ours = {name: error for name, error in failures.items() if name in self._divided}
        return f"not every server could be given version {self._plan.candidate}: {named(ours)}" if ours else None

    def take_back(self) -> Mapping[str, AlipesError]:
        def give(only: Collection[str]) -> dict[str, AlipesError]:
            return self._servers.divide({self._plan.stable: 1}, None, None, only)

        return self._insist(give, _RETURN_TRIES, lambda _: True, self._sleep)

    def _set(self, share: float, only: Collection[str]) -> dict[str, AlipesError]:
        plan = self._plan
        return self._servers.divide(plan.weights(share), plan.sticky_header, plan.shadow(share), only)

    def _is_divided(self, split: TrafficSplit, share: float) -> bool:
        return _weighed(split.weights) == _weighed(self._plan.weights(share)) and split.shadow == self._plan.shadow(
            share
        )

    def _fault(self, state: State, share: float) -> str | None:
        """Why the candidate is to be taken back whatever the requests say, if it is."""
        if (reason := self._missed.fault(state.failures)) is not None:
            return reason
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

    def _insist(
        self,
        attempt: Callable[[Collection[str]], dict[str, AlipesError]],
        tries: int,
        may_repeat: Callable[[AlipesError], bool],
        wait: Callable[[], None],
    ) -> dict[str, AlipesError]:
        """Makes a call at all servers, and again at those that failed; the errors of the last attempt."""
        failures = attempt(self._servers.addresses)
        for _ in range(tries - 1):
            if not failures or not all(map(may_repeat, failures.values())):
                break
            wait()
            failures = attempt(tuple(failures))
        return failures

    def _wait(self) -> None:
        self._stop.wait(self._plan.look_s)

    def _sleep(self) -> None:
        """Waits although the rollout is stopped: a server that starts anew needs the time."""
        time.sleep(min(self._plan.look_s, _RETURN_PAUSE_S))


def _weighed(weights: Mapping[int, int]) -> dict[int, int]:
    """The versions that have a weight."""
    return {version: weight for version, weight in weights.items() if weight}

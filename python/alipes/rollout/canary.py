"""A rollout of a canary of KServe: its share is a field of the service, and its outcomes are those of its pods."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from alipes.cloud.kubernetes.canaries import CanaryState, ServiceCanary
from alipes.cloud.kubernetes.cluster import Cluster
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.errors import AlipesError, CloudError
from alipes.rollout.drive import Look, Reading, RolloutEnd, drive
from alipes.rollout.journal import PROMOTED, ROLLED_BACK, Journal
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.plan import CanaryPlan
from alipes.rollout.pod_counts import PodCounts
from alipes.rollout.servers import Missed

__all__ = ["API_SERVER", "KServeCanary", "ended_meanwhile", "run_canary_rollout"]

API_SERVER: Final = "the API server"
"""Its name among servers that do not answer."""

_FOLLOW_S: Final = 300.0
"""How long KServe may take to divide requests as its service says: a canary's pods may still start."""

_OUTAGE_S: Final = 300.0
"""How long the API server may not answer: one that is upgraded is away for minutes, and nothing can be changed then."""

_STOPPED: Final = "the rollout was stopped"

_PAUSE_S: Final = 1.0
"""Longest time between two looks at what KServe has followed, and between two attempts to change something."""

_UNREADY_S: Final = 30.0
"""How long a canary may have no server that is ready: requests for it find none meanwhile."""

_MOST_RESTARTS: Final = 3
"""Starts of the canary's servers after which it is taken back: a server that crashes counts none of what it loses."""

_CONFLICTS: Final = frozenset({409, 422})
"""Statuses of a change to an object that somebody else has changed meanwhile: of a merge, and of a JSON patch."""

_MOST_CONFLICTS: Final = 20


def run_canary_rollout(
    cluster: Cluster,
    canary: ServiceCanary,
    plan: CanaryPlan,
    journal: Journal | None = None,
    watch: Callable[[Look], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> RolloutEnd:
    """Drives a rollout to its end. Whatever ends it, the canary has all requests afterwards, or none.

    Pods may come and go. The canary is taken back where its pods cannot be read, its servers keep starting again, or
    somebody else changes the service.

    Args:
        cluster: The cluster.
        canary: The canary, as `InferenceServices.canary` finds it.
        plan: What is to be done.
        journal: Where events are noted; a rollout that was broken off goes on at its step.
        watch: Is called with every look.
        stop: Takes the canary back when it is set.

    Raises:
        CloudError: If a pod that gets requests cannot be read, before anything is changed.
        ConfigError: If the journal holds another rollout.
    """
    stop = stop or threading.Event()
    counts = PodCounts(cluster.pod_proxy(plan.port, canary.namespace, plan.headers).call, plan.model)
    target = KServeCanary(cluster.inference_services(canary.namespace), canary, counts, plan.look_s, stop)
    target.check()
    try:
        return drive(target, plan, journal or Journal(None), watch, stop)
    finally:
        target.clear()


def ended_meanwhile(cluster: Cluster, service: str, journal: Journal) -> RolloutEnd | None:
    """The end of a rollout whose canary is gone, since it was broken off after it had promoted it or taken it back.

    Args:
        cluster: The cluster.
        service: The name of the service, in the namespace of the cluster's calls.
        journal: Where the rollout was noted; its end is noted, too.

    Returns:
        How it ended; `None` where the journal holds no such rollout.
    """
    began = journal.unfinished()
    if began is None or began.get("service") != f"{cluster.namespace}/{service}":
        return None
    is_promoted = cluster.inference_services().is_served_by(service, began["candidate"])
    reason = f"the rollout was broken off after {began['candidate']} was {'promoted' if is_promoted else 'taken back'}"
    journal.note(PROMOTED if is_promoted else ROLLED_BACK, reason=reason)
    return RolloutEnd(is_promoted, reason, None)


class CanaryServices(Protocol):
    """The services of a namespace: `InferenceServices`."""

    def canary_state(self, canary: ServiceCanary) -> CanaryState:
        """A service with a canary as it is now."""

    def share(self, name: str, percent: int, canary: str | None = None) -> str:
        """Gives a canary a percentage of the requests."""

    def promote(self, name: str, canary: str | None = None) -> str:
        """Gives a canary all requests."""

    def rollback(self, name: str, canary: str | None = None) -> None:
        """Gives it none."""


class KServeCanary:
    """A canary and what it is to replace, as the target of a rollout."""

    def __init__(
        self,
        services: CanaryServices,
        canary: ServiceCanary,
        counts: PodCounts,
        look_s: float,
        stop: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes all of it, and asks nothing yet.

        Args:
            services: The services of its namespace.
            canary: The canary.
            counts: What counts the outcomes of pods.
            look_s: Seconds between two looks.
            stop: Ends waiting when it is set.
            clock: The time in seconds.
        """
        self._services = services
        self._canary = canary
        self._counts = counts
        self._pause_s = min(look_s, _PAUSE_S)
        self._stop = stop
        self._clock = clock
        self._missed = Missed(lambda error: isinstance(error, NoAnswer))
        self._state: CanaryState | None = None
        self._outcomes = (Outcomes(), Outcomes())
        self._away_since_s: float | None = None
        self._unready_since_s: float | None = None
        self._restarts: dict[str, int] = {}

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the pods at the last look."""
        return () if self._state is None else tuple(pod.name for pod in self._state.pods)

    def check(self) -> None:
        """Reads all pods that get requests.

        Raises:
            CloudError: If one cannot be read.
        """
        state = self._read_state()
        self._counts.check(state.pods)
        self._restarts = {pod.uid: pod.restarts for pod in state.pods}

    def clear(self) -> None:
        """Leaves the servers of pods as they were, where they answer."""
        try:
            self._counts.end(self._read_state().pods)
        except CloudError:  # counting goes on there, which changes nothing
            return

    def divide(self, share: float, *, resumed: bool) -> str | None:
        """Gives the canary a share, waits until KServe has followed, and begins to count."""
        percent = round(share)

        def change() -> str | None:
            state = self._read_state()
            if (reason := self._change(state)) is None and state.percent != percent:
                self._services.share(self._canary.service, percent, self._canary.name)
            return reason

        reason = self._insist(change, self._wait) or self._insist(lambda: self._follow(percent), self._wait)
        if reason is None and self._state is not None:
            self._counts.begin(self._state.pods)
            self._outcomes = (Outcomes(), Outcomes())
        return reason

    def read(self, share: float) -> Reading:
        """The outcomes of the pods of both, and what ends the rollout whatever they are."""
        try:
            state = self._read_state()
        except NoAnswer as error:
            return Reading(*self._outcomes, {API_SERVER: error}, self._outage(error))
        except CloudError as error:
            return Reading(*self._outcomes, {}, str(error))
        self._away_since_s = None
        stable, candidate, silent = self._counts.read(state.pods)
        self._outcomes = (stable, candidate)
        return Reading(stable, candidate, silent, self._fault(state, round(share)) or self._missed.fault(silent))

    def promote(self) -> str | None:
        """Gives the canary all requests; why it cannot, if it cannot."""

        def change() -> str | None:
            state = self._read_state()
            if state.is_promoted:  # by an attempt whose answer was lost
                return None
            if (reason := self._change(state)) is None:
                self._services.promote(self._canary.service, self._canary.name)
            return reason

        return self._insist(change, self._wait)

    def take_back(self) -> Mapping[str, AlipesError]:
        """Gives the stable version all requests, unless the canary is promoted: what it replaced is gone then."""

        def change() -> str | None:
            state = self._read_state()
            if state.is_promoted:
                return f"{self._canary.candidate} is promoted already"
            # Without Knative a canary of 0 % goes too: its servers are taken from those of the predictor.
            if state.percent or (state.percent == 0 and self._canary.name is not None):
                self._services.rollback(self._canary.service, self._canary.name)
            return None

        reason = self._insist(change, self._sleep)
        return {} if reason is None else {self._canary.service: CloudError(reason)}

    def _read_state(self) -> CanaryState:
        self._state = self._services.canary_state(self._canary)
        return self._state

    def _change(self, state: CanaryState) -> str | None:
        """What somebody else has changed about the canary, if anything."""
        name = self._canary.candidate
        if state.is_promoted:
            return f"somebody else has promoted {name}"
        if state.canary is None:
            return f"the canary {name} is gone"
        return None if state.canary == self._canary else "somebody else has changed the models of the service"

    def _fault(self, state: CanaryState, percent: int) -> str | None:
        if (reason := self._change(state)) is not None:
            return reason
        if state.percent != percent:
            return f"somebody else has changed the share of {self._canary.candidate}"
        restarts = sum(pod.restarts - self._restarts.get(pod.uid, 0) for pod in state.pods if pod.is_candidate)
        if restarts >= _MOST_RESTARTS:
            return f"servers of {self._canary.candidate} have ended and started again {restarts} times"
        # With Knative none has to be there: its activator holds requests until one is.
        has_server = self._canary.name is None or any(pod.is_candidate and pod.is_ready for pod in state.pods)
        self._unready_since_s = None if has_server else self._since(self._unready_since_s)
        if self._lasts(self._unready_since_s, _UNREADY_S):
            return f"{self._canary.candidate} has had no server that is ready for {_UNREADY_S:g} s"
        return None

    def _follow(self, percent: int) -> str | None:
        """Returns once KServe has given the canary its share; why it has not, if it does not."""
        began_s = self._clock()
        while True:
            state = self._read_state()
            if (reason := self._change(state)) is not None:
                return reason
            if state.followed == percent:
                return None
            if self._clock() - began_s >= _FOLLOW_S:
                return f"KServe has not given {self._canary.candidate} {percent} % of the requests in {_FOLLOW_S:g} s"
            if self._wait():
                return _STOPPED

    def _outage(self, error: NoAnswer) -> str | None:
        self._away_since_s = self._since(self._away_since_s)
        return f"for {_OUTAGE_S:g} s {error}" if self._lasts(self._away_since_s, _OUTAGE_S) else None

    def _since(self, began_s: float | None) -> float:
        return self._clock() if began_s is None else began_s

    def _lasts(self, began_s: float | None, limit_s: float) -> bool:
        return began_s is not None and self._clock() - began_s >= limit_s

    def _insist(self, attempt: Callable[[], str | None], wait: Callable[[], bool]) -> str | None:
        """Changes something, also where the API server is away or somebody else changes the service meanwhile.

        Args:
            attempt: Changes it; returns why not, if it must not be changed.
            wait: Waits between two attempts; whether there is to be no other one.

        Returns:
            Why it is not changed, or `None`.
        """
        began_s, conflicts = self._clock(), 0
        while True:
            try:
                return attempt()
            except NoAnswer as error:
                if self._clock() - began_s >= _OUTAGE_S:
                    return str(error)
            except Refused as error:
                conflicts += error.status in _CONFLICTS
                if error.status not in _CONFLICTS or conflicts == _MOST_CONFLICTS:
                    return str(error)
            except CloudError as error:
                return str(error)
            if wait():
                return _STOPPED

    def _wait(self) -> bool:
        return self._stop.wait(self._pause_s)

    def _sleep(self) -> bool:
        time.sleep(self._pause_s)
        return False

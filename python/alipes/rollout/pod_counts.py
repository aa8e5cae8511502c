"""What became of the requests of pods, of those that are there and of those that were.

A server counts outcomes while it has weights. A pod's only version gets all requests with or without a weight, so
weights are set for the counts alone, with a value by which they are known as ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from alipes.client.plain.operations import HTTP, Call
from alipes.client.servers.outcomes import added
from alipes.cloud.kubernetes.canaries import ServerPod
from alipes.cloud.kubernetes.refusals import Refused
from alipes.errors import AlipesError, CloudError
from alipes.rollout.outcomes import Outcomes
from alipes.rollout.servers import of_each
from alipes.types import TrafficSplit

__all__ = ["PodCounts"]

T = TypeVar("T")
Document = dict[str, Any]

_OURS: Final = 1_000_000
"""The weight of weights that are ours: the largest that a server accepts. Source: `crates/runtime/src/traffic`."""

_MOST_THREADS: Final = 8
"""Fewer than connections that a client of an API server holds."""

_NOTHING: Final[Document] = {"answered": 0, "failed": 0, "latency_us": [], "samples": {}}


class PodCounts:
    """Outcomes of two groups of pods since a step began, each counted once, whether its pod is there or not.

    A pod counts from the first look at it. What it had counted at the last look stays when it goes, or when its server
    starts again, which then counts from nothing.
    """

    def __init__(self, reach: Callable[[str, str, bytes | None], bytes], model: str) -> None:
        """Takes how a pod's server is reached, as `PodProxy.call` does, and asks nothing yet."""
        self._reach = reach
        self._model = model
        # By the pod's uid, and whether it is the candidate's: a document for each time that it counted from nothing.
        self._lives: dict[tuple[str, bool], list[Document]] = {}
        self._counting: set[str] = set()

    def check(self, pods: Iterable[ServerPod]) -> None:
        """Reads the weights of all pods that get requests.

        Raises:
            CloudError: If one cannot be read.
        """
        failures = self._each([pod for pod in pods if pod.is_ready], self._split)
        for name, error in failures.items():
            if not _is_gone(error):
                raise CloudError(f"the outcomes of pod {name} cannot be read: {error}", reason="Unreadable") from error

    def begin(self, pods: Sequence[ServerPod]) -> None:
        """Counts from nothing. A pod that does not answer is tried again at the next look."""
        self._lives.clear()
        self._counting.clear()
        self._each(pods, self._count)

    def read(self, pods: Sequence[ServerPod]) -> tuple[Outcomes, Outcomes, dict[str, AlipesError]]:
        """The outcomes of both groups, and the errors of pods that had to answer, by name."""
        failures = self._each(pods, self._look)
        expected = {pod.name for pod in pods if pod.is_ready}
        silent = {name: error for name, error in failures.items() if name in expected and not _is_gone(error)}
        return self._sum(is_candidate=False), self._sum(is_candidate=True), silent

    def end(self, pods: Sequence[ServerPod]) -> None:
        """Takes weights that are ours away. A pod that does not answer keeps them, which changes no request's way."""
        self._each(pods, self._clear)

    def _sum(self, *, is_candidate: bool) -> Outcomes:
        parts = [life for key, lives in self._lives.items() if key[1] == is_candidate for life in lives]
        return Outcomes.read(added(parts))

    def _look(self, pod: ServerPod) -> None:
        if pod.uid not in self._counting:
            self._count(pod)
            return
        found = self._call(pod, HTTP.traffic_outcomes(self._model))
        if not found:  # the weights are gone: the server has started again
            self._counting.discard(pod.uid)
            self._count(pod)
            return
        document, lives = added(list(found.values())), self._lives[pod.uid, pod.is_candidate]
        if _requests(document) < _requests(lives[-1]):  # somebody else has set weights, so it counts from nothing
            lives.append(document)
        else:
            lives[-1] = document

    def _count(self, pod: ServerPod) -> None:
        """Has a pod count from nothing: its weights are set, to what they are if somebody else has set them."""
        split = self._split(pod)
        if not split.weights:
            if not split.versions:
                raise CloudError(f"pod {pod.name} serves no version of '{self._model}'", reason="NotFound")
            split = TrafficSplit({max(split.versions): _OURS})
        self._call(pod, HTTP.set_traffic(self._model, split))
        self._lives.setdefault((pod.uid, pod.is_candidate), []).append(_NOTHING)
        self._counting.add(pod.uid)

    def _clear(self, pod: ServerPod) -> None:
        split = self._split(pod)
        if list(split.weights.values()) == [_OURS] and split.sticky_header is None and split.shadow is None:
            self._call(pod, HTTP.set_traffic(self._model, TrafficSplit({})))

    def _split(self, pod: ServerPod) -> TrafficSplit:
        return self._call(pod, HTTP.traffic(self._model))

    def _call(self, pod: ServerPod, call: Call[T]) -> T:
        content = self._reach(pod.name, call.path, call.body)
        try:
            return call.read(content)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"pod {pod.name} does not answer as a server of alipes does: name its HTTP port with --server-port"
            raise CloudError(text, reason="BadAnswer") from error

    @staticmethod
    def _each(pods: Iterable[ServerPod], call: Callable[[ServerPod], object]) -> dict[str, AlipesError]:
        """Makes a call at each pod; the errors, by the name of the pod."""
        return of_each({pod.name: pod for pod in pods}, call, _MOST_THREADS)[1]


def _requests(document: Mapping[str, Any]) -> int:
    return int(document["answered"]) + int(document["failed"])


def _is_gone(error: AlipesError) -> bool:
    """Whether the pod is not there any more, by the words of the API server: a server of ours has no such reason."""
    return isinstance(error, Refused) and error.reason == "NotFound"

"""Pods of a canary and of what it is to replace, in a few lines: they count outcomes as servers do, and come and go."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from alipes.cloud.kubernetes.canaries import CanaryState, ServerPod, ServiceCanary
from alipes.cloud.kubernetes.refusals import Refused
from alipes.errors import CloudError

__all__ = ["CANARY", "FakePod", "FakePods", "FakeServices"]

CANARY = ServiceCanary("iris", "default", "predictor", "next", "app", ("isvc.a", "isvc.b"), "0123")


@dataclass
class FakePod:
    """A pod.

    Attributes:
        is_candidate: Whether it is of the canary.
        answered: Requests that it has answered since it has weights.
        failed: Requests that have failed since.
        weights: Those of its server; without any it counts nothing.
        is_ready: Whether it gets requests.
        restarts: How often its server has started again.
        error: What every call fails with; `None` where calls are answered.
    """

    is_candidate: bool = False
    answered: int = 0
    failed: int = 0
    weights: dict[str, int] = field(default_factory=dict)
    is_ready: bool = True
    restarts: int = 0
    error: CloudError | None = None

    def serve(self, requests: int, failed: int = 0) -> None:
        """Has requests of callers come."""
        if self.weights:
            self.answered += requests - failed
            self.failed += failed

    def start_again(self) -> None:
        """Forgets everything, as a server does that starts anew."""
        self.weights, self.answered, self.failed = {}, 0, 0
        self.restarts += 1

    def answer(self, path: str, body: bytes | None) -> object:
        """The document of an answer."""
        if self.error is not None:
            raise self.error
        if path.endswith("/outcomes"):
            latencies = [[100, self.answered]] if self.answered else []
            counted = {"answered": self.answered, "failed": self.failed, "latency_us": latencies, "samples": {}}
            return {"1": counted} if self.weights else {}
        if body is not None:
            self.weights, self.answered, self.failed = json.loads(body)["weights"], 0, 0
        return {"name": "m", "weights": self.weights, "sticky_header": None, "shadow": None, "versions": [1]}


class FakePods:
    """Pods by their names."""

    def __init__(self, **members: FakePod) -> None:
        """Takes them; others may be put in their place at any time."""
        self.members = members

    def reach(self, pod: str, path: str, body: bytes | None = None) -> bytes:
        """Stands for `PodProxy.call`."""
        if pod not in self.members:
            raise Refused(f'pods "{pod}" not found', 404, "NotFound")
        return json.dumps(self.members[pod].answer(path, body)).encode()

    def listed(self) -> tuple[ServerPod, ...]:
        """What a cluster says of them."""
        return tuple(
            ServerPod(name, f"uid-{name}", one.is_candidate, one.is_ready, one.restarts)
            for name, one in self.members.items()
        )


class FakeServices:
    """A service with a canary, which KServe follows at once.

    Attributes:
        shares: Those that were set, in their order.
        percent: The share of the canary; `None` where it is gone.
        canary: The canary as it is now.
        is_promoted: The canary is what serves.
        before_state: Is called before the state is read, with how often it was read before.
        refusals: Errors of the next changes, in their order.
    """

    def __init__(self, pods: FakePods) -> None:
        """Takes the pods."""
        self.shares: list[int] = []
        self.percent: int | None = 20
        self.canary: ServiceCanary | None = CANARY
        self.is_promoted = False
        self.before_state: Callable[[int], None] = lambda _: None
        self.refusals: list[CloudError] = []
        self._pods, self._reads = pods, 0

    def canary_state(self, canary: ServiceCanary) -> CanaryState:
        """The service now."""
        self._reads += 1
        self.before_state(self._reads - 1)
        return CanaryState(self.canary, self.percent, self.percent, self.is_promoted, self._pods.listed())

    def share(self, name: str, percent: int, canary: str | None = None) -> str:
        """Sets the share."""
        self._check()
        assert (name, canary) == (CANARY.service, CANARY.candidate)
        self.percent = percent
        self.shares.append(percent)
        return CANARY.candidate

    def promote(self, name: str, canary: str | None = None) -> str:
        """Makes the canary what serves."""
        self._check()
        self.canary, self.percent, self.is_promoted = None, None, True
        return CANARY.candidate

    def rollback(self, name: str, canary: str | None = None) -> None:
        """Takes the canary away."""
        self._check()
        self.canary, self.percent = None, None

    def _check(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)

"""The servers of a rollout: all are set and read at the same time, and each is known by its address."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from alipes.client.servers.addresses import with_reasons
from alipes.client.servers.outcomes import added_outcomes
from alipes.errors import AlipesError, DeadlineExceeded, NotReady, Overloaded, TransportError
from alipes.rollout.outcomes import Outcomes
from alipes.types import Shadow, TrafficSplit

__all__ = ["CALL_S", "MOST_MISSED", "Missed", "RolloutServers", "State", "Weighed", "may_pass", "named", "of_each"]

S = TypeVar("S")
T = TypeVar("T")

CALL_S: Final = 5.0
"""The longest wait for one server: one that hangs must not keep the others from being judged."""

MOST_MISSED: Final = 3
"""Looks in a row that a server may leave without an answer, and attempts to set it."""

_MOST_THREADS: Final = 32


class Weighed(Protocol):
    """A server whose versions have weights, or several: `alipes.Client` over HTTP."""

    def servers(self) -> Mapping[str, Weighed]:
        """Each server, by its address."""

    def traffic(self, model: str, *, timeout_s: float | None = None) -> TrafficSplit:
        """How requests are divided."""

    def set_traffic(
        self,
        model: str,
        weights: dict[int, int],
        *,
        sticky_header: str | None = None,
        shadow: Shadow | int | None = None,
        timeout_s: float | None = None,
    ) -> TrafficSplit:
        """Divides them otherwise."""

    def traffic_outcomes(self, model: str, *, timeout_s: float | None = None) -> dict[int, dict[str, object]]:
        """What became of them since."""


@dataclass(frozen=True, slots=True)
class State:
    """All servers at one moment.

    Attributes:
        splits: How each divides the requests, by address.
        outcomes: What became of the requests at all of them together, by version.
        failures: Errors of those that could not be read.
    """

    splits: Mapping[str, TrafficSplit]
    outcomes: Mapping[int, Outcomes]
    failures: Mapping[str, AlipesError]


class RolloutServers:
    """The servers of a rollout of one model. A name that stands for several may stand for others with each call."""

    def __init__(self, server: Weighed, model: str) -> None:
        """Asks nothing yet."""
        self._server = server
        self._model = model

    @property
    def addresses(self) -> tuple[str, ...]:
        """The servers that there are now."""
        return tuple(self._server.servers())

    def read(self) -> State:
        """Reads all that answer."""
        # The split first: outcomes of a server that has started anew since are few, and never those of another split.
        splits, lost = self._each(lambda server: server.traffic(self._model, timeout_s=CALL_S))
        documents, failed = self._each(lambda server: server.traffic_outcomes(self._model, timeout_s=CALL_S), splits)
        added = added_outcomes(list(documents.values()))
        outcomes = {version: Outcomes.read(document) for version, document in added.items()}
        return State({name: splits[name] for name in documents}, outcomes, {**lost, **failed})

    def divide(
        self, weights: dict[int, int], sticky_header: str | None, shadow: Shadow | None, only: Collection[str]
    ) -> dict[str, AlipesError]:
        """Divides the requests at some servers; the errors of those that could not be set."""
        return self._each(
            lambda server: server.set_traffic(
                self._model, weights, sticky_header=sticky_header, shadow=shadow, timeout_s=CALL_S
            ),
            only,
        )[1]

    def promote(self, version: int, only: Collection[str]) -> dict[str, AlipesError]:
        """Gives a version all requests at some servers; the errors of those that could not be set."""

        def give(server: Weighed) -> TrafficSplit:
            highest = max(server.traffic(self._model, timeout_s=CALL_S).versions, default=version)
            weights = {} if highest == version else {version: 1}
            return server.set_traffic(self._model, weights, timeout_s=CALL_S)

        return self._each(give, only)[1]

    def _each(
        self, call: Callable[[Weighed], T], only: Collection[str] | None = None
    ) -> tuple[dict[str, T], dict[str, AlipesError]]:
        """Makes a call at each server, or at some of them: its results, and its errors."""
        servers = {name: one for name, one in self._server.servers().items() if only is None or name in only}
        return of_each(servers, call)


class Missed:
    """How many looks in a row servers have left without an answer."""

    def __init__(self, may_pass: Callable[[AlipesError], bool]) -> None:
        """Takes which errors a server may have and answer the next look."""
        self._may_pass = may_pass
        self._missed: dict[str, int] = {}

    def fault(self, failures: Mapping[str, AlipesError]) -> str | None:
        """Why a look's errors end a rollout, if they do."""
        self._missed = {name: self._missed.get(name, 0) + 1 for name in failures}
        for name, error in failures.items():
            if not self._may_pass(error):
                return named({name: error})
            if self._missed[name] == MOST_MISSED:
                return f"a server left {MOST_MISSED} looks without an answer: {named({name: error})}"
        return None


def of_each(
    servers: Mapping[str, S], call: Callable[[S], T], most_threads: int = _MOST_THREADS
) -> tuple[dict[str, T], dict[str, AlipesError]]:
    """Makes a call at each of some servers, at several at a time: its results, and its errors."""
    found: dict[str, T] = {}
    failures: dict[str, AlipesError] = {}

    def make(name: str) -> None:
        try:
            found[name] = call(servers[name])
        except AlipesError as error:
            failures[name] = error

    if len(servers) == 1:
        make(next(iter(servers)))
    elif servers:
        with ThreadPoolExecutor(min(len(servers), most_threads), "alipes-rollout") as threads:
            list(threads.map(make, servers))
    # In the order of the servers, whichever was first.
    return _ordered(found, servers), _ordered(failures, servers)


def may_pass(error: AlipesError) -> bool:
    """Whether a server may answer if it is asked again: it is silent, starts or has too much to do."""
    return isinstance(error, (TransportError, DeadlineExceeded, NotReady, Overloaded))


def _ordered(found: Mapping[str, T], servers: Mapping[str, object]) -> dict[str, T]:
    return {name: found[name] for name in servers if name in found}


def named(failures: Mapping[str, AlipesError]) -> str:
    """Servers with their errors, as one text."""
    return with_reasons({name: f"{error}" for name, error in failures.items()})

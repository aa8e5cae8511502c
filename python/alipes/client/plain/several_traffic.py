"""How several servers divide the requests for a model: all as they are told, or all as before."""

from __future__ import annotations

from typing import Any, Final

from alipes.client.arguments import model_name
from alipes.client.plain.base import PlainClient
from alipes.client.plain.several_calls import SeveralCalls
from alipes.client.plain.several_errors import at_none, at_some
from alipes.client.plain.steps import Steps
from alipes.client.servers.outcomes import added_outcomes
from alipes.client.servers.spread import Server
from alipes.errors import AlipesError, DeadlineExceeded, TransportError
from alipes.types import TrafficSplit

__all__ = ["SeveralTraffic"]

_READ: Final = "the outcomes of the requests for '{}' were read"
_DIVIDED: Final = "the requests for '{}' were divided"


class SeveralTraffic(SeveralCalls):
    """Reading and changing weights at several servers, as steps."""

    def _traffic_steps(self, model: str, timeout_s: float | None) -> Steps[TrafficSplit]:
        """Fetches how one server divides the requests for a model."""
        return self._one_steps(lambda member, left_s: member._traffic_steps(model, left_s), timeout_s)

    def _traffic_outcomes_steps(self, model: str, timeout_s: float | None) -> Steps[dict[int, dict[str, Any]]]:
        """Fetches what became of the requests at every server, and adds it up."""
        servers = self._servers.all
        found = yield from self._together_steps(lambda one: one._traffic_outcomes_steps(model, timeout_s), servers)
        if failures := _failures(servers, found):
            raise at_some(failures, len(servers), _READ.format(model_name(model)))
        return added_outcomes([one for one in found if not isinstance(one, AlipesError)])

    def _set_traffic_steps(self, model: str, split: TrafficSplit, timeout_s: float | None) -> Steps[TrafficSplit]:
        """Divides the requests for a model at every server; where one cannot be set, all are set back.

        Raises:
            AlipesError: If one cannot be set. The error names it, and those that could not be set back.
        """
        what, servers = _DIVIDED.format(model_name(model)), self._servers.all
        attempts = self._attempts(timeout_s, repeatable=False)
        found = yield from self._together_steps(lambda one: one._traffic_steps(model, attempts.left_s()), servers)
        if failures := _failures(servers, found):
            raise at_none(failures, len(servers), what)
        before = {one.member: was for one, was in zip(servers, found, strict=True) if not isinstance(was, AlipesError)}

        def divide(member: PlainClient) -> Steps[TrafficSplit]:
            return member._set_traffic_steps(model, split, attempts.left_s())

        def restore(member: PlainClient) -> Steps[TrafficSplit]:
            return member._set_traffic_steps(model, before[member], timeout_s)

        found = yield from self._together_steps(divide, servers)
        failures = _failures(servers, found)
        if not failures:
            return next(one for one in found if not isinstance(one, AlipesError))
        changed = [server for server, one in zip(servers, found, strict=True) if _may_be_changed(one)]
        restored = yield from self._together_steps(restore, changed)
        raise at_none(failures, len(servers), what, _failures(changed, restored))


def _failures(servers: tuple[Server[Any], ...] | list[Server[Any]], found: list[Any]) -> dict[str, AlipesError]:
    pairs = zip(servers, found, strict=True)
    return {f"{server}": error for server, error in pairs if isinstance(error, AlipesError)}


def _may_be_changed(found: TrafficSplit | AlipesError) -> bool:
    """Whether a server may have done what was asked of it: who does not answer may have."""
    if isinstance(found, TransportError):
        return found.reached
    return isinstance(found, (TrafficSplit, DeadlineExceeded))

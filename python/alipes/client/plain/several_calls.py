"""How a client of several servers makes a call: at one of them, at all of them, or at any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from alipes.client.plain.base import PlainClient
from alipes.client.plain.failover import Failover, at
from alipes.client.plain.several_errors import at_some
from alipes.client.plain.steps import Steps, Together
from alipes.client.servers.spread import Server, Servers
from alipes.errors import AlipesError

__all__ = ["SeveralCalls"]

T = TypeVar("T")


class SeveralCalls(PlainClient):
    """The calls of a client of several servers, as steps."""

    _servers: Servers[PlainClient]

    def _failover(self, timeout_s: float | None, *, repeatable: bool) -> Failover:
        return Failover(self._servers, self._attempts(timeout_s, repeatable=repeatable))

    def _one_steps(self, ask: Callable[[PlainClient, float | None], Steps[T]], timeout_s: float | None) -> Steps[T]:
        """Makes a call at one server, and at another where that does not answer."""
        failover = self._failover(timeout_s, repeatable=True)
        return failover.steps(lambda member: ask(member, failover.left_s()))

    def _any_steps(self, ask: Callable[[PlainClient], Steps[bool]]) -> Steps[bool]:
        found = yield from self._together_steps(ask, self._servers.all)
        return any(one is True for one in found)

    def _everywhere_steps(
        self,
        ask: Callable[[PlainClient], Steps[None]],
        what: str,
        servers: Sequence[Server[PlainClient]] | None = None,
    ) -> Steps[None]:
        """Makes a call at every server, or at some.

        Raises:
            AlipesError: If it fails at one; at the others it was made.
        """
        servers = self._servers.all if servers is None else servers
        found = yield from self._together_steps(ask, servers)
        failures = {f"{server}": error for server, error in zip(servers, found, strict=True) if error is not None}
        if failures:
            raise at_some(failures, len(servers), what)

    def _together_steps(
        self, ask: Callable[[PlainClient], Steps[T]], servers: Sequence[Server[PlainClient]]
    ) -> Steps[list[T | AlipesError]]:
        """Makes a call at each server, at all at the same time; their results or errors, in the servers' order."""
        verbs = tuple(at(server.member, ask(server.member)) for server in servers)
        found: list[T | AlipesError] = (yield Together(verbs)) if verbs else []
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, AlipesError):
                raise one
        return found

"""One call to several servers: asked of one, and of the others in turn where that one does not answer.

What may be repeated is the retry policy's decision. A server that nothing was sent to costs no attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import Any, Final, TypeVar

from alipes.client.plain.base import PlainClient
from alipes.client.plain.retry import Attempts, Failure
from alipes.client.plain.several_errors import no_server, sequence_lost
from alipes.client.plain.steps import LookUp, Pause, ServerStep, Step, Steps
from alipes.client.servers.renewal import RENEW_SOON_S
from alipes.client.servers.spread import Server, Servers
from alipes.errors import AlipesError, DeadlineExceeded, NotFound, TransportError, Unsupported

__all__ = ["Failover", "at"]

T = TypeVar("T")

_INTRODUCTION_S: Final = 0.8
"""The longest wait for a server's first answer, which brings nothing but its name, while there are others: one that
accepts connections and is silent, or speaks another protocol, gets no request."""

_LOOK_UP_S: Final = 1.0
"""The longest wait for the addresses of a name: a call that has tried all servers goes on without them."""


class Failover:
    """One call to several servers."""

    def __init__(self, servers: Servers[PlainClient], attempts: Attempts) -> None:
        """Takes the servers, and the attempts that the call may take."""
        self._servers = servers
        self._attempts = attempts
        self._failures: dict[Server[PlainClient], AlipesError] = {}
        self._is_fit: Callable[[PlainClient], bool] = _any_is_fit
        self._unfit: frozenset[Server[PlainClient]] = frozenset()
        self._to_count = False

    def left_s(self) -> float | None:
        """The remaining time; `None` is no limit."""
        return self._attempts.left_s()

    def only(self, is_fit: Callable[[PlainClient], bool]) -> None:
        """Leaves out servers that cannot answer this call."""
        self._is_fit = is_fit
        self._unfit = frozenset(server for server in self._servers.all if not is_fit(server.member))

    def note_first(self, failed: Failure) -> None:
        """Notes a first attempt that was made already.

        Raises:
            AlipesError: The error itself, if there is no next attempt.
        """
        self._attempts.count_time(failed)
        self._decide(failed.error)

    def steps(self, ask: Callable[[PlainClient], Steps[T]]) -> Steps[T]:
        """Makes the call.

        Raises:
            AlipesError: If no server answers it; where several were tried, the error names them.
        """
        server, answer = yield from self.held_steps(ask)
        self._servers.leave(server)
        return answer

    def held_steps(self, ask: Callable[[PlainClient], Steps[T]]) -> Steps[tuple[Server[PlainClient], T]]:
        """As `steps`, with the server that has answered, which is still entered."""
        while True:
            server = self._servers.enter(self._failures.keys() | self._unfit)
            if server is None:
                yield from self._next_round_steps()
                continue
            self._count()
            try:
                return server, (yield from self._attempt_steps(server, ask))
            except AlipesError as error:
                self._note(server, error)

    def sequence_steps(self, ask: Callable[[PlainClient], Steps[T]], sequence: Hashable, *, start: bool) -> Steps[T]:
        """As `steps`, at the server of a sequence."""
        while True:
            there = self._servers.has(sequence)
            server = self._servers.enter_for(sequence, start, self._failures.keys() | self._unfit)
            if server is None:
                yield from self._next_round_steps()
                continue
            self._count()
            try:
                answer = yield from self._attempt_steps(server, ask)
            except AlipesError as error:
                if start or not there:
                    self._note(server, error)
                    continue
                # The state of the sequence is there: no other server can be asked.
                try:
                    wait_s = self._attempts.after(error)
                except TransportError as error:
                    raise sequence_lost(sequence[1], f"{server}", error) from error  # type: ignore[index]
                yield Pause(wait_s)
            else:
                self._servers.leave(server)
                self._servers.remember(sequence, server)
                return answer

    def _attempt_steps(self, server: Server[PlainClient], ask: Callable[[PlainClient], Steps[T]]) -> Steps[T]:
        """One attempt at a server, which is left where it fails."""
        try:
            if not server.member._answered:
                yield from self._introduction_steps(server)
            return (yield from at(server.member, ask(server.member)))
        except BaseException as error:
            self._servers.leave(server)
            if isinstance(error, AlipesError):
                self._servers.note(server, error)
            raise

    def _introduction_steps(self, server: Server[PlainClient]) -> Steps[None]:
        """Has a server say its name, before anything else is asked there.

        Raises:
            TransportError: If it does not, with `reached` false: nothing was sent that counts.
        """
        member, left_s = server.member, self.left_s()
        others = any(other.lost is None for other in self._servers.all if other is not server)
        if others:
            left_s = _INTRODUCTION_S if left_s is None else min(left_s, _INTRODUCTION_S)
        try:
            yield from at(member, member._server_metadata_steps(left_s))
        except (TransportError, Unsupported, DeadlineExceeded) as error:
            if isinstance(error, DeadlineExceeded) and not others:
                raise
            failure = TransportError(f"{error}")
            failure.reached = False
            raise failure from error
        self._servers.welcome(server, member._link.plain)

    def _note(self, server: Server[PlainClient], error: AlipesError) -> None:
        """Notes a failed attempt.

        Raises:
            AlipesError: The error itself, if the call is not to be made elsewhere.
        """
        self._failures[server] = error
        self._decide(error)

    def _decide(self, error: AlipesError) -> None:
        """Whether the call is made elsewhere: where nothing was sent, and where another server may have the model."""
        if (isinstance(error, TransportError) and not error.reached) or isinstance(error, NotFound):
            return
        self._attempts.check(error)
        self._to_count = True

    def _count(self) -> None:
        if self._to_count:
            self._to_count = False
            self._attempts.count()

    def _next_round_steps(self) -> Steps[None]:
        """Looks for further servers after all were tried, and pauses where there are none.

        Raises:
            AlipesError: If they are not tried again.
        """
        if self._servers.is_renewed and (yield from self._look_up_steps()):
            return
        failures = {f"{server}": error for server, error in self._failures.items()}
        self._to_count = False
        yield Pause(self._attempts.after(no_server(failures)))
        self._failures.clear()

    def _look_up_steps(self) -> Steps[bool]:
        """Looks the names up: in an update all servers that were there a moment ago may have stopped."""
        left_s = self.left_s()
        wait_s = _LOOK_UP_S if left_s is None else min(left_s, _LOOK_UP_S)
        yield LookUp(lambda: self._servers.renew_after(RENEW_SOON_S), wait_s)
        self.only(self._is_fit)
        return not set(self._servers.all) <= self._failures.keys() | self._unfit


def _any_is_fit(_: PlainClient) -> bool:
    return True


def at(member: PlainClient, steps: Generator[Step, Any, T]) -> Steps[T]:
    """The steps of a verb of one server's client, performed there."""
    try:
        step = next(steps)
        while True:
            try:
                result = yield ServerStep(step, member._link)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        returned: T = stop.value
        return returned

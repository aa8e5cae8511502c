"""Which of several servers is asked next: the one with the fewest calls in flight among those that answer."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from alipes.client.backoff import NOT_BEGUN
from alipes.client.servers.addresses import Place
from alipes.client.servers.renewal import Renewal
from alipes.client.servers.watch import Watch
from alipes.errors import AlipesError, NotFound, Overloaded, TransportError

__all__ = ["Server", "Servers"]

M = TypeVar("M")

_LOG: Final = logging.getLogger("alipes.client")

_MOST_SEQUENCES: Final = 65_536
"""Sequences whose server is remembered: those that were never ended are forgotten, the oldest first."""

_REST_S: Final = 0.5
"""How long a server that has refused a request comes last, unless it says for how long."""

_ALL: Final[weakref.WeakSet[Servers[Any]]] = weakref.WeakSet()


class Server(Generic[M]):
    """One of several servers.

    Attributes:
        place: Where it is.
        member: What makes the calls to it.
        in_flight: Calls that it has not answered, but for the quick one.
        busy: Whether a quick call is in flight there.
        ask: What makes a quick call; `None` until the server is known to answer.
        quick: The same; `None` also while there is a reason to think first: it is lost, rests or has other calls.
        answered: Calls that it has answered, or refused.
        sequences: Sequences that are at it.
        lost: Why no calls go there; `None` while they do.
        rests_until_s: When it comes first again, after a refusal; on the monotonic clock.
    """

    __slots__ = (
        "__weakref__",
        "answered",
        "ask",
        "busy",
        "in_flight",
        "lost",
        "member",
        "place",
        "quick",
        "rests_until_s",
        "sequences",
    )

    def __init__(self, place: Place, member: M) -> None:
        """Takes what makes its calls."""
        self.place = place
        self.member = member
        self.in_flight = 0
        self.answered = 0
        self.sequences = 0
        self.lost: str | None = None
        self.rests_until_s = 0.0
        self.busy = False
        self.ask: Callable[..., Any] | None = None
        self.quick: Callable[..., Any] | None = None

    @property
    def load(self) -> int:
        """All calls that it has not answered."""
        return self.in_flight + self.busy

    def weigh(self) -> None:
        """Decides whether it may be asked without a thought."""
        free = not self.in_flight and self.lost is None and not self.rests_until_s
        self.quick = self.ask if free else None

    def __str__(self) -> str:
        """Its address."""
        return self.place.address


class Servers(Generic[M]):
    """The servers of one client. Any thread may ask; a thread of its own looks after those that are silent or gone.

    Attributes:
        idle: Servers without a quick call, those that wait longest first. Who takes one from here without the lock,
            sets `busy`, asks by `quick` and puts it back, has asked the server with the least load: the fast path of
            clients that wait. Where `quick` is `None`, `enter` decides.
    """

    def __init__(
        self,
        where: Callable[[], Iterable[Place]],
        make: Callable[[Place], M],
        is_live: Callable[[M, float], bool],
        renewed: bool,
    ) -> None:
        """Looks the servers up; asks none of them.

        Args:
            where: The places of the servers as they are now; raises `TransportError`.
            make: Makes what makes the calls to a server.
            is_live: Whether a server answers within so many seconds.
            renewed: Whether the places may change, so that they are looked up again.

        Raises:
            TransportError: If the places cannot be looked up.
        """
        self._where, self._make, self.is_live = where, make, is_live
        self._renewal = Renewal() if renewed else None
        self._lock = threading.Lock()
        self._all = tuple(Server(place, make(place)) for place in where())
        self._up = self._all
        self.idle = deque(self._all)
        self._turn = -1
        self._sequences: dict[Hashable, Server[M]] = {}
        self._watch: Watch | None = None
        _ALL.add(self)

    @property
    def all(self) -> tuple[Server[M], ...]:
        """All servers, in the order of their addresses."""
        return self._all

    def enter(self, besides: Container[Server[M]] = ()) -> Server[M] | None:
        """The server that is asked next; `leave` follows. `None` where there is no other.

        Args:
            besides: Servers that are out of the question.
        """
        with self._lock:
            server = self._least(besides)
            if server is not None:
                self._begin(server)
            return server

    def enter_for(self, sequence: Hashable, start: bool, besides: Container[Server[M]]) -> Server[M] | None:
        """The server of a sequence: where it is already, or else that with the fewest sequences; `leave` follows.

        Args:
            sequence: The sequence.
            start: Whether it begins here: then it leaves a server that is gone.
            besides: Servers that are out of the question where the sequence is at none.
        """
        with self._lock:
            server = self._sequences.get(sequence)
            if server is None or (start and (server.lost is not None or server in besides)):
                others = [one for one in self._up or self._all if one not in besides]
                server = min(others, key=lambda one: (one.sequences, one.load), default=None)
            if server is not None:
                self._begin(server)
            return server

    def remember(self, sequence: Hashable, server: Server[M]) -> None:
        """Notes that a sequence is at a server."""
        with self._lock:
            self._forget(sequence)
            self._sequences[sequence] = server
            server.sequences += 1
            if len(self._sequences) > _MOST_SEQUENCES:
                self._forget(next(iter(self._sequences)))

    def forget(self, sequence: Hashable) -> None:
        """Notes that a sequence has ended."""
        with self._lock:
            self._forget(sequence)

    def has(self, sequence: Hashable) -> bool:
        """Whether a sequence is at a server."""
        return sequence in self._sequences

    def leave(self, server: Server[M]) -> None:
        """Notes that a call is over, in whichever way."""
        with self._lock:
            server.in_flight -= 1
            server.answered += 1
            if not server.in_flight:
                server.weigh()

    def pass_over(self, server: Server[M]) -> None:
        """Takes back that a server was entered: it is the next one again."""
        with self._lock:
            server.in_flight -= 1
            self._turn -= 1
            if not server.in_flight:
                server.weigh()

    def put_back(self, server: Server[M]) -> None:
        """Puts a server back that was taken from `idle` and not asked."""
        with self._lock:
            if server in self._all:  # and not gone by now
                self.idle.append(server)

    def welcome(self, server: Server[M], ask: Callable[..., Any]) -> None:
        """Notes that a server has answered for the first time."""
        with self._lock:
            server.ask = ask
            server.weigh()

    def lose(self, server: Server[M], why: AlipesError | str) -> None:
        """Sends no calls to a server until it answers again."""
        with self._lock:
            first = server.lost is None
            server.lost = str(why)
            server.weigh()
            self._up = tuple(one for one in self._all if one.lost is None)
            self._watched().look_after(server)
        if first:
            _LOG.warning("%s is left until it answers again: %s", server, why)

    def find(self, server: Server[M]) -> None:
        """Sends calls to a server again."""
        with self._lock:
            found = server.lost is not None
            server.lost = None
            server.rests_until_s = 0.0
            server.weigh()
            self._up = tuple(one for one in self._all if one.lost is None)
        if found:
            _LOG.warning("%s answers again", server)

    def note(self, server: Server[M], error: AlipesError) -> None:
        """Notes what a server has failed with: one that was not reached is lost, one that has refused comes last.

        Whose fault an error is, it says itself: a request that is wrong is so at every server.
        """
        if isinstance(error, TransportError):
            self.lose(server, error)
        elif isinstance(error, (*NOT_BEGUN, NotFound)):
            pause_s = error.retry_after_s if isinstance(error, Overloaded) else None
            with self._lock:
                server.rests_until_s = time.monotonic() + (_REST_S if pause_s is None else pause_s)
                server.weigh()

    def renew(self) -> None:
        """Looks the places up again: new servers are asked from now on, those that are there no more are not.

        Raises:
            TransportError: If they cannot be looked up.
        """
        places = list(self._where())
        with self._lock:
            known = {server.place.address: server for server in self._all}
            self._all = tuple(known.get(place.address) or Server(place, self._make(place)) for place in places)
            for server in set(known.values()) - set(self._all):
                server.lost = "its name stands for it no more"
                server.weigh()
            self.idle.extend(server for server in self._all if server.place.address not in known)
            self._up = tuple(one for one in self._all if one.lost is None)

    def renew_after(self, pause_s: float) -> None:
        """Looks the places up again, where they may change and that was not done within so many seconds."""
        if self._renewal is not None:
            self._renewal.after(pause_s, self.renew)

    @property
    def is_renewed(self) -> bool:
        """Whether the places may change."""
        return self._renewal is not None

    def close(self) -> None:
        """Looks after no server any more."""
        with self._lock:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    # What follows is called with the lock held.

    def _least(self, besides: Container[Server[M]]) -> Server[M] | None:
        servers = self._up or self._all
        count = len(servers)
        self._turn = turn = (self._turn + 1) % count
        best, resting, least = None, None, 0
        for index in range(turn, turn + count):
            server = servers[index % count]
            load = server.load
            if (best is not None and load >= least) or server in besides:
                continue
            if server.rests_until_s and self._rests(server):
                resting = resting or server
                continue
            best, least = server, load
            if not load:
                break
        return best or resting

    def _rests(self, server: Server[M]) -> bool:
        if server.rests_until_s > time.monotonic():
            return True
        server.rests_until_s = 0.0
        server.weigh()
        return False

    def _begin(self, server: Server[M]) -> None:
        server.in_flight += 1
        server.quick = None
        if self._watch is None:
            self._watched()

    def _watched(self) -> Watch:
        if self._watch is None:
            self._watch = Watch(self)
        return self._watch

    def _forget(self, sequence: Hashable) -> None:
        server = self._sequences.pop(sequence, None)
        if server is not None:
            server.sequences -= 1

    def _forked(self) -> None:
        """In a child process: calls in flight and the thread that looks are the parent's."""
        self._lock = threading.Lock()
        self._watch = None
        self._renewal = Renewal() if self.is_renewed else None
        for server in self._all:
            server.in_flight, server.busy, server.quick = 0, False, None
        self.idle = deque(self._all)


def _after_fork() -> None:
    for one in list(_ALL):
        one._forked()


os.register_at_fork(after_in_child=_after_fork)

"""The links of a client of several servers: one stream to each, and the requests divided among them.

A link belongs to one server, its home. Where that is gone, the link goes on at another with all that it has, and comes
home when the server answers again and nothing holds the link where it is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from alipes.client.inference.endpoints import GrpcEndpoints, none_answers
from alipes.client.inference.link import Link
from alipes.client.inference.recovery import RecoveryPolicy
from alipes.client.inference.sequence_queue import PendingRequest, SequenceQueue
from alipes.client.inference.stream import Stream, Target
from alipes.client.inference.transport import GrpcEndpoint
from alipes.errors import AlipesError, NotReady, TransportError

__all__ = ["LinkGroup"]

_LOG: Final = logging.getLogger("alipes.client")

_FIRST_PAUSE_S: Final = 0.1
_MOST_PAUSE_S: Final = 2.0
"""Pauses between looks at a home that is gone: they double."""

_IDLE_PAUSE_S: Final = 0.05
"""Pause between looks at whether a link that is to come home has anything under way."""


class _HomedLink(Link):
    """A link of a group.

    Attributes:
        home: The address of its server.
        group: The group.
        sequences: Sequences that are on it.
        coming_home: Whether it takes nothing new, so that it can be opened anew at its home.
        loose: The queue of its requests without a sequence.
    """

    home: str
    group: LinkGroup
    sequences = 0
    coming_home = False
    loose: SequenceQueue

    @property
    def receiving(self) -> bool:
        """Whether the calling thread receives for any link: answers are delivered one after the other."""
        thread = threading.current_thread()
        return any(thread is link._receiver for link in self.group.links)

    @property
    def load(self) -> int:
        """Requests that are under way, or about to be."""
        return len(self._in_flight) + len(self._resending) + len(self._delayed)

    @property
    def is_away(self) -> bool:
        """Whether it is at another server than its own."""
        return self._stream is not None and self._address != self.home

    def move(self, address: str) -> None:
        """Notes where it is."""
        self._address = address


class LinkGroup:
    """Has what a `Link` has, over several."""

    def __init__(
        self,
        endpoints: GrpcEndpoints,
        target: Target,
        connect: Callable[[GrpcEndpoint], Stream],
        deliver: Callable[[list[PendingRequest]], None],
        recovery: RecoveryPolicy,
        *,
        ordered: bool,
    ) -> None:
        """Opens nothing yet.

        Args:
            endpoints: The servers.
            target: The model, its version and the parameters of every request.
            connect: Opens a stream to a server that can answer; raises `TransportError` or `NotReady`.
            deliver: Receives answered and failed requests, in the order of their queues; one thread at a time.
            recovery: The recovery from failures.
            ordered: Whether requests without a sequence are delivered in the order in which they were sent.
        """
        self._endpoints, self._connect_to, self._deliver_to = endpoints, connect, deliver
        self._ordered = ordered
        self._lock = threading.Lock()
        self._delivery = threading.RLock()
        self._order: deque[PendingRequest] = deque()
        self._turn = -1
        self._generation = 0
        self._places: dict[SequenceQueue, _HomedLink] = {}
        self._closing = threading.Event()
        self.links = [self._link(endpoint.address, target, recovery) for endpoint in endpoints.current()]

    def _link(self, address: str, target: Target, recovery: RecoveryPolicy) -> _HomedLink:
        link = _HomedLink(address, target, lambda: self._connect(link), self._deliver, recovery)
        link.home, link.group, link.loose = address, self, SequenceQueue(None, ordered=self._ordered)
        return link

    @property
    def receiving(self) -> bool:
        """Whether the calling thread receives for any link."""
        return self.links[0].receiving

    def open(self) -> None:
        """Connects, where that is not done yet.

        Raises:
            TransportError: If no server can be reached.
        """
        self._closing.clear()
        for link in self.links:
            link.open()

    def send(self, request: PendingRequest) -> None:
        """Puts a request on its way, over the link with the fewest under way, or that of its sequence.

        Raises:
            TransportError: If no server can be reached, or the state of the request's sequence is lost.
        """
        self._closing.clear()
        queue = request.queue
        if queue.sequence_id is None:
            with self._lock:
                link = self._least()
                request.queue = link.loose
                if self._ordered:
                    self._order.append(request)
            try:
                link.send(request)
            except BaseException:
                self._withdraw(request)
                raise
            return
        with self._lock:
            place = self._places.get(queue)
            if place is None:
                free = [link for link in self.links if not link.coming_home] or self.links
                place = self._places[queue] = min(free, key=lambda link: (link.recovering, link.sequences, link.load))
                place.sequences += 1
        try:
            place.send(request)
        finally:
            if request.end:
                self._leave(queue)

    def close(self) -> None:
        """Ends the streams in order, once everything is answered."""
        self._closing.set()
        for link in self.links:
            link.close()
        self._forget_places()

    def drop(self) -> None:
        """Ends the streams at once; of the pending requests, only futures are cancelled."""
        self._closing.set()
        self._generation += 1
        for link in self.links:
            link.drop()
        self._forget_places()

    def forget(self) -> None:
        """Leaves everything to the process that this one was forked from."""
        self._lock, self._delivery = threading.Lock(), threading.RLock()
        self._closing = threading.Event()
        for link in self.links:
            link.forget()
        self._forget_places()

    def _forget_places(self) -> None:
        with self._lock:
            self._places.clear()
            self._order.clear()
            for link in self.links:
                link.sequences = 0
                link.loose = SequenceQueue(None, ordered=self._ordered)

    def _leave(self, queue: SequenceQueue) -> None:
        with self._lock:
            link = self._places.pop(queue, None)
            if link is not None:
                link.sequences -= 1

    def _least(self) -> _HomedLink:
        """The link with the fewest requests under way, by turn among equals; called with the lock held."""
        self._turn = turn = (self._turn + 1) % len(self.links)
        links = [*self.links[turn:], *self.links[:turn]]
        return min(links, key=lambda link: (link.coming_home, link.recovering, link.load))

    def _withdraw(self, request: PendingRequest) -> None:
        """Takes back a request that was not sent; those behind it wait for it no longer."""
        if self._ordered:
            with self._lock:
                self._order.remove(request)
            self._deliver([])

    def _deliver(self, leaving: list[PendingRequest]) -> None:
        """Delivers in order over all links: what one has answered waits for what another was sent before."""
        generation = self._generation
        with self._delivery:
            if generation != self._generation:
                return
            if self._ordered:
                leaving = [request for request in leaving if request.queue.sequence_id is not None]
                with self._lock:
                    while self._order and self._order[0].done:
                        leaving.append(self._order.popleft())
            if leaving:
                self._deliver_to(leaving)

    def _connect(self, link: _HomedLink) -> Stream:
        """A stream to a link's home, or else to the server with the fewest links; called with the link's lock held."""
        endpoints = self._endpoints.current()
        if link.home not in {one.address for one in endpoints}:  # its name stands for others now
            link.home = min(endpoints, key=lambda one: self._links_at(one.address)).address
        order = sorted(endpoints, key=lambda one: (one.address != link.home, self._links_at(one.address)))
        failures: dict[str, AlipesError] = {}
        for endpoint in order:
            try:
                stream = self._connect_to(endpoint)
            except (TransportError, NotReady) as error:
                failures[endpoint.address] = error
                continue
            link.move(endpoint.address)
            if failures:
                why = next(iter(failures.values()))
                _LOG.warning("%s is left (%s): its requests go to %s", link.home, why, endpoint.address)
                work = threading.Thread(target=self._bring_home, args=(link,), name="alipes-client-watch", daemon=True)
                work.start()
            return stream
        raise none_answers(failures)

    def _links_at(self, address: str) -> int:
        return sum(link._stream is not None and link._address == address for link in self.links)

    def _bring_home(self, link: _HomedLink) -> None:
        """Waits until a link's home answers, and then until nothing holds the link where it is."""
        pause_s, home = _FIRST_PAUSE_S, link.home
        while not self._closing.wait(pause_s) and link.is_away and link.home == home:
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)
            endpoint = next((one for one in self._endpoints.current() if one.address == home), None)
            if endpoint is None or not self._answers(endpoint):
                continue
            link.coming_home = True
            try:
                while link.sequences or link.load:
                    if self._closing.wait(_IDLE_PAUSE_S) or not link.is_away:
                        return
                link.close()  # the next request opens it, at home
                _LOG.warning("%s answers again", home)
            finally:
                link.coming_home = False
            return

    def _answers(self, endpoint: GrpcEndpoint) -> bool:
        try:
            self._connect_to(endpoint).cancel()
        except AlipesError:
            return False
        return True

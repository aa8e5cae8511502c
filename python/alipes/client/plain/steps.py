"""The steps of a client's verbs, performed by a driver that waits or by one that awaits.

A verb is a generator: it yields a step, receives the step's result or error, and returns the verb's result. `Client`
and `AsyncClient` differ only in the driver, so each verb is written once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from alipes._core import ClientLink, ClientMailbox, ClientStream, ClientTask
from alipes.client.endpoint import Wire

__all__ = [
    "ControlStep",
    "InferStep",
    "Listen",
    "Look",
    "LookUp",
    "OpenStream",
    "Pause",
    "ServerStep",
    "Step",
    "Steps",
    "Together",
    "TransportStep",
    "Where",
    "perform",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InferStep:
    """One attempt at an inference; its result is what `ClientLink.infer` returns.

    Attributes:
        arguments: The arguments of `ClientLink.infer`.
    """

    arguments: tuple[Any, ...]

    def run(self, link: ClientLink) -> Any:
        """Sends the request and waits for the response."""
        return link.infer(*self.arguments)

    def begin(self, link: ClientLink, mailbox: ClientMailbox, number: int) -> ClientTask:
        """Sends the request; the response arrives in the mailbox."""
        return link.begin_infer(mailbox, number, *self.arguments)


@dataclass(frozen=True, slots=True)
class ControlStep:
    """One attempt at a control call; its result is the body of the response.

    Attributes:
        path: Path or method.
        body: The request's body; `None` is a GET over HTTP.
        timeout_s: Time for this attempt; `None` is no limit.
    """

    path: str
    body: bytes | None
    timeout_s: float | None

    def run(self, link: ClientLink) -> Any:
        """Sends the call and waits for the response."""
        return link.call(self.path, self.body, self.timeout_s)

    def begin(self, link: ClientLink, mailbox: ClientMailbox, number: int) -> ClientTask:
        """Sends the call; the response arrives in the mailbox."""
        return link.begin_call(mailbox, number, self.path, self.body, self.timeout_s)


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the next attempt; its result is `None`."""

    seconds: float

    def run(self, _link: ClientLink) -> None:
        """Sleeps on the calling thread."""
        time.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Look:
    """A look at what answers at the server's address; its result is advice, or `None`.

    Attributes:
        address: The address, as the user wrote it.
        wire: The protocol of the client.
    """

    address: str
    wire: Wire

    def run(self, _link: ClientLink) -> str | None:
        """Asks, and waits for an answer."""
        from alipes.client.wrong_port import advice  # a client that is answered never needs it

        return advice(self.address, self.wire)


@dataclass(frozen=True, slots=True)
class Listen:
    """A look for the protocol that is spoken at an address; its result is `grpc`, `http`, `other`, or `None`.

    Attributes:
        address: The address, as the user wrote it.
    """

    address: str

    def run(self, _link: ClientLink) -> str | None:
        """Asks, and waits for an answer."""
        from alipes.client.wrong_port import spoken_at  # as rare as `Look`

        return spoken_at(self.address)


@dataclass(frozen=True, slots=True)
class Where:
    """A look for another endpoint of the server at an address; its result is what to pass instead, as a sentence.

    Attributes:
        address: The address, as the user wrote it.
        met: The protocol there.
        wanted: The protocol of the endpoint that is wanted.
    """

    address: str
    met: Wire
    wanted: Wire

    def run(self, _link: ClientLink) -> str:
        """Asks, and waits for an answer."""
        from alipes.client.wrong_port import instead_of  # as rare as `Look`

        return instead_of(self.address, self.met, self.wanted)


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look for further servers behind the names of a client; its result is `None`.

    Attributes:
        look_up: Looks the names up.
        wait_s: The longest wait for it: it goes on by itself afterwards.
    """

    look_up: Callable[[], None]
    wait_s: float

    def run(self, _link: ClientLink) -> None:
        """Asks, and waits for an answer."""
        thread = threading.Thread(target=self.look_up, name="alipes-client-look-up", daemon=True)
        thread.start()
        thread.join(max(0.0, self.wait_s))


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Opens a stream with one request on it, the only one; its result is the stream.

    Attributes:
        connection: The arguments of `ClientStream`.
        request: The arguments of `ClientStream.send`.
    """

    connection: tuple[Any, ...]
    request: Mapping[str, Any]

    def run(self, _link: ClientLink) -> ClientStream:
        """Connects and sends, and waits for both."""
        stream = ClientStream(*self.connection)
        try:
            stream.send(**self.request)
            stream.half_close()
        except BaseException:
            stream.cancel()
            raise
        return stream


@dataclass(frozen=True, slots=True)
class TransportStep:
    """One attempt at a call that a function answers in the place of a server; its result is that answer.

    Attributes:
        transport: The function.
        call: What it is passed.
    """

    transport: Callable[[Any], Any]
    call: Any

    def run(self, _link: ClientLink) -> Any:
        """Calls the function."""
        return self.transport(self.call)


@dataclass(frozen=True, slots=True)
class ServerStep:
    """A step of a client of several servers, at one of them; its result is the step's.

    Attributes:
        step: The step.
        link: The calls to that server.
    """

    step: Step
    link: ClientLink

    def run(self, _link: ClientLink) -> Any:
        """Performs the step at that server."""
        return self.step.run(self.link)


@dataclass(frozen=True, slots=True)
class Together:
    """Verbs that are performed at the same time; its result is a list of their results or errors, in their order.

    Attributes:
        verbs: The verbs.
    """

    verbs: tuple[Steps[Any], ...]

    def run(self, link: ClientLink) -> list[Any]:
        """Performs each on a thread, and waits for all; Ctrl-C ends the wait, and a program does not wait either."""
        found: list[Any] = [None] * len(self.verbs)

        def work(number: int, steps: Steps[Any]) -> None:
            try:
                found[number] = perform(steps, lambda: link)
            except BaseException as error:
                found[number] = error

        threads = [
            threading.Thread(target=work, args=each, name="alipes-client", daemon=True)
            for each in enumerate(self.verbs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


Step: TypeAlias = (
    InferStep
    | ControlStep
    | Pause
    | Look
    | LookUp
    | Listen
    | Where
    | OpenStream
    | TransportStep
    | ServerStep
    | Together
)
Steps: TypeAlias = Generator[Step, Any, T]
"""A verb in progress; its return value is the verb's result."""


def perform(steps: Steps[T], link: Callable[[], ClientLink]) -> T:
    """Performs the steps of a verb on the calling thread, each at the link of its time: a step may bring another."""
    try:
        step = next(steps)
        while True:
            try:
                result = step.run(link())
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        returned: T = stop.value
        return returned

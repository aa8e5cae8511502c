"""The calls of both plain clients to one server: its endpoint, the retry policy, and what to do at a wrong address."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Never, Self, TypeVar

from alipes._core import ClientLink, ClientPlan
from alipes.client.api_key import keyed_headers
from alipes.client.arguments import check_type, seconds, setting_error, timeout_setting
from alipes.client.endpoint import Endpoint, has_scheme
from alipes.client.guessed import GuessedNames, refuse_keywords, refuse_values
from alipes.client.plain.operations import HTTP, Call, Operations
from alipes.client.plain.retry import Attempts, Retry
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Listen, Look, Pause, Step, Steps
from alipes.client.plain.transport import Transport, TransportOperations
from alipes.client.plain.undecided import UndecidedOperations
from alipes.client.servers.addresses import Address, are_several, places, read_addresses
from alipes.client.signature import Signature
from alipes.client.tls import Tls
from alipes.errors import AlipesError, InferError, NotFound, TransportError, Unsupported

__all__ = ["DEFAULT_TIMEOUT_S", "ServerCalls", "repeat_steps"]

T = TypeVar("T")

_LOG: Final = logging.getLogger("alipes.client")

DEFAULT_TIMEOUT_S: Final = 60.0
"""Default for the longest time of a request with all its attempts: longer than nearly any model takes, and finite, so
that a silent server blocks no caller for ever."""

_CONNECT_TIMEOUT_S: Final = 10.0

_NO_PAGE: Final = "Not Found"
"""What a server answers at a path where it has nothing."""


class ServerCalls(GuessedNames):
    """A client's calls to one server, as steps, and what it knows of that server.

    Attributes:
        endpoint: The server's endpoint; HTTP's as soon as that turns out to be spoken at an address without a scheme.
        timeout_s: Longest time for a request with all its attempts; `None` is no limit.
        retry: Policy for requests that may be sent again.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        address: Address = "localhost:8001",
        *values: Never,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        timeout: float | None = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float | None = None,
        retry: Retry | None = None,
        headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        tls: Tls | None = None,
        transport: Transport | None = None,
        **guessed: Never,
    ) -> None:
        """Connects with the first request.

        Args:
            address: `host:port`, `grpc://host:port` or `http://host:port`; with `grpcs://` or `https://` for encrypted
                connections, and `unix:path` in the place of host and port for a Unix socket. Without a scheme the first
                call finds out whether gRPC or HTTP is spoken there. A list of addresses, or a text with commas between
                them, spreads the calls over several servers, and so does `dns:///name:8001` over all that a name
                stands for.
            timeout_s: Longest time for a request with all its attempts; `None` is no limit.
            timeout: The same under its short name.
            connect_timeout_s: Longest time for a connection: 10 s by default, with several servers 1 s.
            retry: Policy for requests that may be sent again; `Retry(times=0)` never does.
            headers: Headers of each request; metadata, over gRPC.
            api_key: The key that each request shows; by default that of the environment's `ALIPES_API_KEY`, and empty
                for none.
            tls: Trusted roots and the certificate of the client for encrypted connections; the roots of the system by
                default.
            transport: Answers the calls in the place of a server, to which nothing is sent then: a `FakeServer`, or any
                function of a `TransportCall`.
            values: What other clients take behind the address, which is refused.
            guessed: Keywords of other clients, which are refused with what stands for them.

        Raises:
            TypeError: If there is no such keyword.
            ConfigError: If an argument is of another type, the address is of an unknown kind, or a file of `tls` cannot
                be used.
            TransportError: If the address cannot be parsed, or its name cannot be looked up.
        """
        if values:
            refuse_values(type(self).__name__, values)
        if guessed:
            refuse_keywords(type(self).__name__, guessed)
        spread = None
        if not isinstance(address, str) or are_several(address):
            spread = read_addresses(address)
            address = places(spread)[0].address
        self.endpoint = Endpoint.parse(address, tls)
        self._address = address
        self._undecided = self.endpoint.tls is None and not has_scheme(address)
        if transport is not None and not callable(transport):
            raise setting_error("transport", "a function, or a FakeServer", transport)
        self._transport = transport
        self._answered = transport is not None  # nobody looks at an address that is not used
        self._advice: str | None = None
        self._looked = False
        self.timeout_s = timeout_setting(timeout_s, timeout, DEFAULT_TIMEOUT_S)
        check_type("retry", Retry, "a Retry, such as Retry(times=3)", retry)
        self.retry = retry if retry is not None else Retry()
        self._headers = keyed_headers(headers, api_key)
        limit_s = seconds("connect_timeout_s", connect_timeout_s, setting_error)
        self._connect_timeout_s = _CONNECT_TIMEOUT_S if limit_s is None else limit_s
        self._encryption = None if self.endpoint.tls is None else self.endpoint.tls.read()
        self._link = self._connect(self.endpoint)
        self._signatures: dict[tuple[str, str], Signature] = {}
        self._plans: dict[str, ClientPlan] = {}
        self._regions: tuple[SharedMemory, ...] = ()
        if spread is not None and are_several(spread):
            if transport is not None:
                raise setting_error("transport", "None beside several addresses", transport)
            from alipes.client.plain.several import become_several  # clients of one server never need it

            become_several(self, spread, limit_s, tls)

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self._link.close()

    def servers(self) -> dict[str, Self]:
        """A client of each server, by its address, for what each answers for itself: statistics, for instance.

        Of a client of one server, the client itself. The others use the connections of this client, are closed with it,
        and make each call once.
        """
        return {f"{self.endpoint}": self}

    def __repr__(self) -> str:
        """The class and the server's address."""
        if self._transport is not None:
            return f"{type(self).__name__}(transport={self._transport!r})"
        return f"{type(self).__name__}('{self.endpoint}')"

    def _connect(self, where: Endpoint) -> ClientLink:
        """A link to an endpoint; it connects with its first call."""
        return ClientLink(where.address, where.wire, self._connect_timeout_s, self._headers, self._encryption)

    def _probe_steps(self, call: Call[bool], timeout_s: float | None = None) -> Steps[bool]:
        """Makes one attempt at a health call; a server that refuses or cannot be reached counts as false."""
        attempts = self._attempts(timeout_s, repeatable=call.repeatable)
        try:
            found = call.read((yield call.step(attempts.left_s())))
        except (InferError, TransportError) as error:
            if (other := (yield from self._over_http_steps(call, error))) is not None:
                return (yield from self._probe_steps(other, timeout_s))
            if _is_strange(error):
                yield from self._look_again_steps()
            return False
        # Over HTTP any page is a yes, and a metrics port has one for every path. So it does not count as an answer.
        if found and self.endpoint.wire == "http" and self._transport is None:
            return (yield from self._look_again_steps()) is None
        return found

    def _look_again_steps(self) -> Steps[str | None]:
        """Looks at a server that was strange before too, for it may be another one now; warns once."""
        before = self._advice
        self._looked = self._looked and before is None
        advice = yield from self._look_steps()
        if advice is not None and before is None:
            _LOG.warning("%s", advice)
        return advice

    def _call_steps(self, call: Call[T], timeout_s: float | None = None) -> Steps[T]:
        """Makes a control call, with retries."""
        attempts = self._attempts(timeout_s, repeatable=call.repeatable, retry=call.retry)
        try:
            while True:
                try:
                    response = yield call.step(attempts.left_s())
                    break
                except AlipesError as error:
                    if (other := (yield from self._over_http_steps(call, error))) is not None:
                        call = other
                        continue
                    wait_s = attempts.after(error)
                yield Pause(wait_s)
            found = self._read(call, response)
        except (TransportError, Unsupported) as error:
            advice = (yield from self._look_steps()) if _is_strange(error) else None
            if advice is not None:
                text = f"{error}; {advice}"
                error.args = (text,)
                if isinstance(error, Unsupported):
                    error.message = text
            raise
        except NotFound as error:
            _, slash, path = self.endpoint.address.partition("/")
            if slash and error.message.partition(";")[0] == _NO_PAGE and self.endpoint.wire == "http":
                error.message = f"{_NO_PAGE}: the address has the path '/{path}': leave it out, or correct it"
                error.args = (error.message,)
            raise
        self._answered = True
        return found

    def _over_http_steps(self, call: Call[T], error: AlipesError) -> Steps[Call[T] | None]:
        """The same call over HTTP, where the address has no scheme and HTTP is what is spoken there.

        A look costs a round trip, so nobody looks before a first call over gRPC has failed.
        """
        if call.over_http is None or not _is_strange(error):
            return None
        if self.endpoint.wire == "grpc" and (yield Listen(self._address)) == "http":
            before = self._link
            over_http = replace(self.endpoint, wire="http")
            # The link first: a thread that sees the new endpoint finds the new link, too.
            self._link = self._connect(over_http)
            self.endpoint = over_http
            before.close()
        if self.endpoint.wire == "http":
            return call.over_http()
        if call.only_http is not None and isinstance(error, Unsupported):
            raise Unsupported(call.only_http) from error
        return None

    def _look_steps(self) -> Steps[str | None]:
        """What speaks at the address of a server that has never answered, though something is there; looks once."""
        if self._answered or self.endpoint.tls is not None:
            return None
        if not self._looked:
            self._looked = True
            self._advice = yield Look(self._address, self.endpoint.wire)
        return self._advice

    def _read(self, call: Call[T], response: Any) -> T:
        try:
            return call.read(response)
        except AlipesError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise TransportError(f"the answer of {self.endpoint} to {call.path} cannot be read: {why}") from error

    @property
    def _operations(self) -> Operations:
        if self._transport is not None:
            return TransportOperations(self._transport)
        if self.endpoint.wire == "http":
            return HTTP
        from alipes.client.plain.operations_grpc import GRPC  # imports protobuf, which HTTP clients never need

        return UndecidedOperations(GRPC) if self._undecided and not self._answered else GRPC

    def _attempts(self, timeout_s: float | None, *, repeatable: bool, retry: Retry | None = None) -> Attempts:
        whole_s = self.timeout_s if timeout_s is None else timeout_s
        return Attempts(retry or self.retry, whole_s, repeatable=repeatable)


def repeat_steps(attempts: Attempts, step: Callable[[float | None], Step]) -> Steps[Any]:
    """Repeats a step while the retry policy allows it; `step` takes the time that is left."""
    while True:
        try:
            return (yield step(attempts.left_s()))
        except AlipesError as error:
            wait_s = attempts.after(error)
        yield Pause(wait_s)


def _is_strange(error: AlipesError) -> bool:
    """Whether something is there that does not answer as a server does."""
    return error.reached if isinstance(error, TransportError) else isinstance(error, Unsupported)

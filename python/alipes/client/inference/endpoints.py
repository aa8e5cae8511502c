"""The gRPC endpoints of several servers, behind one client for streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from alipes.client.inference.calls import Calls
from alipes.client.inference.transport import GrpcEndpoint
from alipes.client.servers.addresses import Address, Place, are_several, listed, places, read_addresses, with_reasons
from alipes.client.tls import Tls
from alipes.errors import AlipesError, InferError, TransportError

__all__ = ["GrpcEndpoints", "none_answers", "open_endpoint"]

T = TypeVar("T")

_CONNECT_S = 1.0
"""The longest time for a connection, unless the caller has set another: there are other servers to ask."""


class GrpcEndpoints:
    """The endpoints of several servers.

    Attributes:
        address: All addresses, as the user wrote them.
    """

    def __init__(
        self, address: Address, tls: Tls | None, timeout_s: float, headers: Sequence[tuple[str, str]] | None = None
    ) -> None:
        """Looks names up; connects to nobody.

        Raises:
            ConfigError: If an address is not one of gRPC, or a file of `tls` cannot be used.
            TransportError: If a name cannot be looked up.
        """
        self.address = listed(address)
        self._addresses = read_addresses(address)
        self._tls, self._timeout_s, self._headers = tls, timeout_s, headers
        self._renewed = any(map(are_several, self._addresses))
        self._known: dict[str, GrpcEndpoint] = {}
        self._current = self._looked_up()

    def current(self) -> list[GrpcEndpoint]:
        """The endpoints; names are looked up again, and mean what they did where nobody can be asked."""
        if self._renewed:
            with suppress(TransportError):
                self._current = self._looked_up()
        return self._current

    def find(self, work: Callable[[Calls, str], T]) -> tuple[T, Calls]:
        """Does work at each server, such as loading a model there.

        Returns:
            What the first has answered, and the calls to it, which stay open.

        Raises:
            AlipesError: If none has.
        """
        found: tuple[T, Calls] | None = None
        failures: dict[str, AlipesError] = {}
        for endpoint in self._current:
            calls = endpoint.calls()
            try:
                result = work(calls, endpoint.address)
            except BaseException as error:
                calls.close()
                if not isinstance(error, (TransportError, InferError)):
                    raise
                failures[endpoint.address] = error
                continue
            if found is None:
                found = result, calls
            else:
                calls.close()
        if found is None:
            raise none_answers(failures)
        return found

    def _looked_up(self) -> list[GrpcEndpoint]:
        return [self._known.get(place.address) or self._made(place) for place in places(self._addresses)]

    def _made(self, place: Place) -> GrpcEndpoint:
        tls = self._tls
        if tls is not None and place.name is not None and tls.server_name is None:
            tls = replace(tls, server_name=place.name)
        made = self._known[place.address] = GrpcEndpoint(place.address, tls, self._timeout_s, self._headers)
        return made


def open_endpoint(
    address: Address,
    tls: Tls | None,
    timeout_s: float | None,
    default_s: float,
    headers: Sequence[tuple[str, str]] | None = None,
) -> GrpcEndpoint | GrpcEndpoints:
    """The endpoint at an address, or those at several.

    Args:
        address: What the user wrote.
        tls: What is known of encryption.
        timeout_s: The longest time for a connection, where the user has set one.
        default_s: That of a single endpoint, where not.
        headers: Headers of each call.
    """
    if isinstance(address, str) and not are_several(address):
        return GrpcEndpoint(address, tls, timeout_s or default_s, headers)
    addresses = read_addresses(address)
    if not are_several(addresses):
        return GrpcEndpoint(addresses[0], tls, timeout_s or default_s, headers)
    return GrpcEndpoints(addresses, tls, timeout_s or _CONNECT_S, headers)


def none_answers(failures: dict[str, AlipesError]) -> AlipesError:
    """One error for what was tried at each server in vain, of the first one's class, with each one's reason."""
    reasons = with_reasons({address: f"{error}" for address, error in failures.items()})
    first = next(iter(failures.values()))
    return type(first)(f"none of the {len(failures)} servers can answer: {reasons}")

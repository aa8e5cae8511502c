"""A plain client of several servers: each verb is made at one of them, or at all of them, by a client of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final, Self

from alipes._core import ClientPlan
from alipes.client.arguments import check_request, model_name, request_error
from alipes.client.plain.base import PlainClient
from alipes.client.plain.options import Options
from alipes.client.plain.request import Answer, Inputs, Outputs, PreparedRequest, check_tensors
from alipes.client.plain.responses import ResponseSource
from alipes.client.plain.retry import Failure, Retry
from alipes.client.plain.several_stream import ServerResponses
from alipes.client.plain.several_traffic import SeveralTraffic
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Steps, perform
from alipes.client.plain.transport import TransportRequest
from alipes.client.servers.addresses import Place, places
from alipes.client.servers.spread import Servers
from alipes.client.signature import Signature
from alipes.client.tls import Tls
from alipes.errors import AlipesError, InvalidArgument, Unsupported
from alipes.types import IndexEntry

__all__ = ["SeveralServers", "become_several"]

_CONNECT_S: Final = 1.0
"""The longest time for a connection, unless the caller has set one: there are other servers to ask."""


def become_several(client: Any, addresses: list[str], connect_timeout_s: float | None, tls: Tls | None) -> None:
    """Makes a client of one server one of several: it is of another class then, so that one server costs no step more.

    Args:
        client: The client, of the first server.
        addresses: The addresses of all.
        connect_timeout_s: The longest time for a connection, where the caller has set one.
        tls: What is known of encryption.
    """
    kind = type(client)
    limit_s = _CONNECT_S if connect_timeout_s is None else connect_timeout_s
    headers, timeout_s = dict(client._headers), client.timeout_s

    def make(place: Place) -> PlainClient:
        member: PlainClient
        named = tls
        if tls is not None and place.name is not None and tls.server_name is None:
            named = replace(tls, server_name=place.name)
        member = kind(
            place.address,
            timeout_s=timeout_s,
            connect_timeout_s=limit_s,
            retry=Retry(times=0),
            headers=headers,
            api_key="",  # it is among the headers
            tls=named,
        )
        # What a model takes is the same at all servers: it is asked once.
        member._signatures, member._plans = client._signatures, client._plans
        return member

    renewed = any(address.startswith("dns:") for address in addresses)
    client.__class__ = _of_several(kind)  # type: ignore[arg-type]  # a class is hashable
    client._servers = Servers(lambda: places(addresses), make, _is_live, renewed)
    client._link = _SpreadLink(client._servers)
    client._addresses = addresses


@cache
def _of_several(kind: type[Any]) -> type[Any]:
    return type(kind.__name__, (SeveralServers, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _is_live(member: PlainClient, timeout_s: float) -> bool:
    return perform(member._live_steps(timeout_s), lambda: member._link)


class _SpreadLink:
    """What the fast path of a client takes for its link: the link of the server that is asked next."""

    def __init__(self, servers: Servers[PlainClient]) -> None:
        """Takes the servers."""
        self._servers = servers

    def plain(self, plan: ClientPlan, inputs: Any, timeout_s: float | None) -> Any:
        """As `ClientLink.plain`, at the server that is idle longest; `None` where `Servers.enter` has to decide."""
        servers = self._servers
        idle = servers.idle
        try:
            server = idle.popleft()
        except IndexError:  # more callers than servers
            return self._thoughtfully(plan, inputs, timeout_s)
        quick = server.quick
        if quick is None:
            servers.put_back(server)
            return self._thoughtfully(plan, inputs, timeout_s)
        server.busy = True
        try:
            return quick(plan, inputs, timeout_s)
        except AlipesError as error:
            servers.note(server, error)
            raise
        finally:
            server.busy = False
            server.answered += 1
            idle.append(server)

    def _thoughtfully(self, plan: ClientPlan, inputs: Any, timeout_s: float | None) -> Any:
        servers = self._servers
        server = servers.enter()
        if server is None or server.ask is None:
            return None if server is None else servers.pass_over(server)
        try:
            return server.ask(plan, inputs, timeout_s)
        except AlipesError as error:
            servers.note(server, error)
            raise
        finally:
            servers.leave(server)

    def close(self) -> None:
        """Closes the connections to all servers."""
        self._servers.close()
        for server in self._servers.all:
            server.member._link.close()


class SeveralServers(SeveralTraffic):
    """The verbs of a client of several servers, as steps."""

    _addresses: list[str]

    def __repr__(self) -> str:
        """The class and the addresses."""
        return f"{type(self).__name__}({self._addresses!r})"

    def servers(self) -> dict[str, Self]:
        """A client of each server, by its address."""
        return {f"{server}": server.member for server in self._servers.all}  # type: ignore[misc]  # of the same class

    def _infer_steps(
        self,
        model: str,
        inputs: Inputs,
        outputs: Outputs | None,
        timeout_s: float | None,
        options: Options,
        failed: Failure | None = None,
    ) -> Steps[tuple[PreparedRequest | TransportRequest, Answer]]:
        """Sends a request to one server after the other until it is answered."""
        model_name(model)
        check_tensors(inputs, outputs)
        failover = self._failover(timeout_s, repeatable=not options.sequence_id)
        if failed is not None:
            failover.note_first(failed)
        if isinstance(outputs, Mapping) and self._regions:
            failover.only(lambda member: set(self._regions) <= set(member._regions))

        def ask(member: PlainClient) -> Steps[tuple[PreparedRequest | TransportRequest, Answer]]:
            return member._infer_steps(model, inputs, outputs, failover.left_s(), options)

        if not options.sequence_id:
            return (yield from failover.steps(ask))
        sequence = (model, options.sequence_id)
        answer = yield from failover.sequence_steps(ask, sequence, start=options.sequence_start)
        if options.sequence_end:
            self._servers.forget(sequence)
        return answer

    def _stream_steps(
        self, model: str, inputs: Inputs, outputs: Outputs | None, timeout_s: float | None, options: Options
    ) -> Steps[ResponseSource]:
        """Sends a request to a server, which sends all its responses."""
        failover = self._failover(timeout_s, repeatable=False)

        def ask(member: PlainClient) -> Steps[ResponseSource]:
            return member._stream_steps(model, inputs, outputs, failover.left_s(), options)

        server, source = yield from failover.held_steps(ask)
        return ServerResponses(source, self._servers, server)

    def _live_steps(self, timeout_s: float | None) -> Steps[bool]:
        """Whether any server answers."""
        return self._any_steps(lambda member: member._live_steps(timeout_s))

    def _ready_steps(self, model: str | None, version: str, timeout_s: float | None) -> Steps[bool]:
        """Whether any server is ready, or the model at any."""
        if model is None and version:
            raise InvalidArgument(f"version: expected a model beside it, got {version!r} alone")
        return self._any_steps(lambda member: member._ready_steps(model, version, timeout_s))

    def _server_metadata_steps(self, timeout_s: float | None) -> Steps[dict[str, Any]]:
        """Fetches the name, version and extensions of one server."""
        return self._one_steps(lambda member, left_s: member._server_metadata_steps(left_s), timeout_s)

    def _models_steps(self, timeout_s: float | None) -> Steps[list[IndexEntry]]:
        """Fetches the models of one server."""
        return self._one_steps(lambda member, left_s: member._models_steps(left_s), timeout_s)

    def _metadata_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[dict[str, Any]]:
        """Fetches a model's versions, inputs and outputs from one server."""
        return self._one_steps(lambda member, left_s: member._metadata_steps(model, version, left_s), timeout_s)

    def _config_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[dict[str, Any]]:
        """Fetches a model's configuration from one server."""
        return self._one_steps(lambda member, left_s: member._config_steps(model, version, left_s), timeout_s)

    def _signature_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[Signature]:
        """Fetches a model's signature from one server, for all."""
        return self._one_steps(lambda member, left_s: member._signature_steps(model, version, left_s), timeout_s)

    def _statistics_steps(self, model: str, version: str, timeout_s: float | None) -> Steps[list[dict[str, Any]]]:
        """Refuses: each server counts by itself."""
        first = self._servers.all[0]
        raise Unsupported(
            f"statistics are those of one server, and this client has {len(self._servers.all)}: ask each by a client "
            f"of its own, as client.servers()['{first}'].statistics()"
        )

    def _load_steps(
        self,
        model: str,
        config: Mapping[str, Any] | str | None,
        files: Mapping[str, bytes] | None,
        timeout_s: float | None,
    ) -> Steps[None]:
        """Loads a model at every server."""
        check_request("config", (str, Mapping), "a configuration as a dictionary or as JSON", config)
        check_request("files", Mapping, "a dictionary of contents by path", files)
        what = f"model '{model_name(model)}' was loaded"
        yield from self._everywhere_steps(lambda member: member._load_steps(model, config, files, timeout_s), what)

    def _unload_steps(self, model: str, dependents: bool, timeout_s: float | None) -> Steps[None]:
        """Unloads a model at every server."""
        what = f"model '{model_name(model)}' was unloaded"
        yield from self._everywhere_steps(lambda member: member._unload_steps(model, dependents, timeout_s), what)

    def _share_steps(self, byte_size: int) -> Steps[SharedMemory]:
        """Creates a shared-memory region and registers it with every server."""
        if not isinstance(byte_size, int) or isinstance(byte_size, bool):
            raise request_error("byte_size", "a whole number", byte_size)
        region = SharedMemory(byte_size)
        try:
            yield from self._everywhere_steps(lambda member: member._register_steps(region), "the memory was shared")
        except BaseException:
            yield from self._unshare_steps(region)
            region.close()
            raise
        region.remove_name()
        self._regions = (*self._regions, region)
        return region

    def _unshare_steps(self, region: SharedMemory, timeout_s: float | None = None) -> Steps[None]:
        """Unregisters a shared-memory region at every server that has it; those that are gone have it no more."""
        self._regions = tuple(other for other in self._regions if other is not region)
        servers = [one for one in self._servers.all if one.lost is None and region in one.member._regions]
        yield from self._everywhere_steps(
            lambda member: member._unshare_steps(region, timeout_s), "the memory was released", servers
        )

    def _share_cuda_steps(
        self, name: str, handle: bytes, device_id: int, byte_size: int, timeout_s: float | None
    ) -> Steps[None]:
        """Registers memory of a GPU with every server."""
        yield from self._everywhere_steps(
            lambda member: member._share_cuda_steps(name, handle, device_id, byte_size, timeout_s),
            f"region '{name}' was registered",
        )

    def _cuda_regions_steps(self, name: str, timeout_s: float | None) -> Steps[list[dict[str, Any]]]:
        """Fetches a region on a GPU from one server, or all where the name is empty."""
        return self._one_steps(lambda member, left_s: member._cuda_regions_steps(name, left_s), timeout_s)

    def _unshare_cuda_steps(self, name: str, timeout_s: float | None) -> Steps[None]:
        """Unregisters memory of a GPU at every server."""
        yield from self._everywhere_steps(
            lambda member: member._unshare_cuda_steps(name, timeout_s), f"region '{name}' was unregistered"
        )

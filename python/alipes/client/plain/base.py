"""Both plain clients without their driver: the server's endpoint, the retry policy, the known models, the verbs."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from alipes._core import ClientLink, ClientPlan
from alipes.client.arguments import (
    check_request,
    check_type,
    header_pairs,
    model_name,
    request_error,
    seconds,
    setting_error,
    timeout_setting,
)
from alipes.client.endpoint import Endpoint, has_scheme
from alipes.client.plain.operations import HTTP, Call, Operations
from alipes.client.plain.options import Options
from alipes.client.plain.request import Answer, Array, Inputs, Outputs, PreparedRequest, check_tensors
from alipes.client.plain.responses import Reception, ResponseSource
from alipes.client.plain.retry import Attempts, Failure, Retry
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import Listen, Look, OpenStream, Pause, Step, Steps, Where
from alipes.client.plain.transport import Transport, TransportOperations, TransportReception, TransportRequest
from alipes.client.plain.undecided import UndecidedOperations
from alipes.client.signature import Signature, read_signature
from alipes.client.tls import Tls
from alipes.client.triton_aliases import TritonAliases
from alipes.config.nearest import nearest_first
from alipes.errors import AlipesError, InferError, InvalidArgument, NotFound, TransportError, Unsupported

__all__ = ["DEFAULT_TIMEOUT_S", "PlainClient", "result_of"]

T = TypeVar("T")

_LOG: Final = logging.getLogger("alipes.client")

DEFAULT_TIMEOUT_S: Final = 60.0
"""Default for the longest time of a request with all its attempts: longer than nearly any model takes, and finite, so
that a silent server blocks no caller for ever."""

_CONNECT_TIMEOUT_S: Final = 10.0

_NO_MODEL: Final = re.compile(r"failed to poll from model repository$|^requested model '.*' is not available$")
"""Refusals of Triton to load a model and to count its requests, where there is none of its name; and for other reasons.
Source: Triton 2.51, recorded.
"""


class PlainClient(TritonAliases):
    """The verbs, each written once as steps; the driver of the steps belongs to the subclass."""

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        address: str = "localhost:8001",
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        timeout: float | None = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        retry: Retry | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | None = None,
        transport: Transport | None = None,
    ) -> None:
        """Connects with the first request.

        Args:
            address: `host:port`, `grpc://host:port` or `http://host:port`; with `grpcs://` or `https://` for encrypted
                connections, and `unix:path` in the place of host and port for a Unix socket. Without a scheme the first
                call finds out whether gRPC or HTTP is spoken there.
            timeout_s: Longest time for a request with all its attempts; `None` is no limit.
            timeout: The same under its short name.
            connect_timeout_s: Longest time for a connection.
            retry: Policy for requests that may be sent again; `Retry(times=0)` never does.
            headers: Headers of each request; metadata, over gRPC.
            tls: Trusted roots and the certificate of the client for encrypted connections; the roots of the system by
                default.
            transport: Answers the calls in the place of a server, to which nothing is sent then: a `FakeServer`, or any
                function of a `TransportCall`.

        Raises:
            ConfigError: If an argument is of another type, the address is of an unknown kind, or a file of `tls` cannot
                be used.
            TransportError: If the address cannot be parsed.
        """
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
        self._headers = header_pairs(headers)
        limit_s = seconds("connect_timeout_s", connect_timeout_s, setting_error)
        self._connect_timeout_s = _CONNECT_TIMEOUT_S if limit_s is None else limit_s
        self._encryption = None if self.endpoint.tls is None else self.endpoint.tls.read()
        self._link = self._connect(self.endpoint)
        self._signatures: dict[tuple[str, str], Signature] = {}
        self._plans: dict[str, ClientPlan] = {}
        self._regions: tuple[SharedMemory, ...] = ()

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self._link.close()

    def __repr__(self) -> str:
        """The class and the server's address."""
        if self._transport is not None:
            return f"{type(self).__name__}(transport={self._transport!r})"
        return f"{type(self).__name__}('{self.endpoint}')"

    def _connect(self, where: Endpoint) -> ClientLink:
        """A link to an endpoint; it connects with its first call."""
        return ClientLink(where.address, where.wire, self._connect_timeout_s, self._headers, self._encryption)

    def _infer_steps(
        self,
        model: str,
        inputs: Inputs,
        outputs: Outputs | None,
        timeout_s: float | None,
        options: Options,
        failed: Failure | None = None,
    ) -> Steps[tuple[PreparedRequest | TransportRequest, Answer]]:
        """Sends a request until it is answered; `failed` is a first attempt that was made already."""
        model_name(model)
        check_tensors(inputs, outputs)
        attempts = self._attempts(timeout_s, repeatable=not options.sequence_id)
        try:
            if failed is not None:
                yield Pause(attempts.after_first(failed))
            request: PreparedRequest | TransportRequest
            if self._transport is not None:
                request = TransportRequest(self._transport, model, inputs, outputs, options)
            else:
                request = yield from self._prepare_steps(model, inputs, outputs, options, self._regions)
            response = yield from _repeat_steps(attempts, request.step)
        except InferError as error:
            error.model = model
            error.request_id = options.request_id or None
            raise
        return request, request.answer(response)

    def _stream_steps(
        self, model: str, inputs: Inputs, outputs: Outputs | None, timeout_s: float | None, options: Options
    ) -> Steps[ResponseSource]:
        """Sends a request whose responses are received one after the other."""
        attempts = self._attempts(timeout_s, repeatable=False)
        if self._transport is not None:
            asks = TransportRequest(self._transport, model, inputs, outputs, options)
            responses = yield from _repeat_steps(attempts, asks.stream_step)
            return TransportReception(iter(responses), asks)
        yield from self._need_grpc_steps()
        where = (self.endpoint.address, self._connect_timeout_s, self._headers, self._encryption)
        try:
            request = yield from self._prepare_steps(model, inputs, outputs, options, ())
            yield from self._need_grpc_steps()  # the address may have turned out to be one of HTTP
            stream = yield from _repeat_steps(attempts, lambda _: OpenStream(where, request.on_stream()))
        except InferError as error:
            error.model = model
            error.request_id = options.request_id or None
            raise
        return Reception(stream, request, self.timeout_s if timeout_s is None else timeout_s)

    def _need_grpc_steps(self) -> Steps[None]:
        """Refuses to stream over HTTP, and says where gRPC is."""
        if self.endpoint.wire == "http":
            where = yield Where(self._address, "http", "grpc")
            raise Unsupported(f"stream() needs gRPC, and this client asks {self.endpoint} over HTTP; {where}")

    def _prepare_steps(
        self,
        model: str,
        inputs: Inputs,
        outputs: Outputs | None,
        options: Options,
        regions: tuple[SharedMemory, ...],
    ) -> Steps[PreparedRequest]:
        """Checks the inputs against the model's signature, which is fetched once."""
        known = self._signatures.get((model, options.version))
        if known is not None:
            try:
                return PreparedRequest(known, inputs, outputs, options, regions)
            except InvalidArgument:
                # The model may have been reloaded with other inputs since its signature was fetched.
                if (yield from self._signature_steps(model, options.version)) == known:
                    raise
        signature = yield from self._signature_steps(model, options.version)
        return PreparedRequest(signature, inputs, outputs, options, regions)

    def _signature_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[Signature]:
        """Fetches a model's signature and remembers it."""
        metadata = yield from self._metadata_steps(model, version, timeout_s)
        try:
            config = yield from self._call_steps(self._operations.config(model, version), timeout_s)
        except InferError:
            config = None  # not every server has configurations; such a one reports missing inputs itself
        return self._learn(model, version, read_signature(metadata, config))

    def _metadata_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[dict[str, Any]]:
        """Fetches a model's versions, inputs and outputs."""
        call = self._operations.metadata(model_name(model), version)
        return (yield from self._about_steps(model, call, timeout_s))

    def _config_steps(self, model: str, version: str, timeout_s: float | None = None) -> Steps[dict[str, Any]]:
        """Fetches a model's configuration."""
        call = self._operations.config(model_name(model), version)
        return (yield from self._about_steps(model, call, timeout_s))

    def _statistics_steps(self, model: str, version: str, timeout_s: float | None) -> Steps[list[dict[str, Any]]]:
        """Fetches the statistics of a model's versions, or of all models."""
        call = self._operations.statistics(model_name(model), version)
        return (yield from self._about_steps(model, call, timeout_s))

    def _about_steps(self, model: str, call: Call[T], timeout_s: float | None = None) -> Steps[T]:
        """Makes a control call about a model; an error says which models there are where there is none of its name."""
        try:
            return (yield from self._call_steps(call, timeout_s))
        except InferError as error:
            if not isinstance(error, NotFound) and not _NO_MODEL.search(str(error)):
                raise
            try:
                names = {entry.name for entry in (yield from self._call_steps(self._operations.index()))}
            except AlipesError:
                raise error from None
            if model in names or not model:
                raise
            raise NotFound(f"{error}; the server has {_listed(model, names)}", model=model) from error

    def _load_steps(
        self,
        model: str,
        config: Mapping[str, Any] | str | None,
        files: Mapping[str, bytes] | None,
        timeout_s: float | None,
    ) -> Steps[None]:
        """Loads a model; without a time-out it takes as long as the server needs."""
        check_request("config", (str, Mapping), "a configuration as a dictionary or as JSON", config)
        check_request("files", Mapping, "a dictionary of contents by path", files)
        call = self._operations.load(model_name(model), _config_text(config), files or {})
        yield from self._about_steps(model, call, _unlimited(timeout_s))
        self._forget(model)

    def _unload_steps(self, model: str, dependents: bool, timeout_s: float | None) -> Steps[None]:
        """Unloads a model; without a time-out it takes as long as the server needs."""
        yield from self._call_steps(self._operations.unload(model_name(model), dependents), _unlimited(timeout_s))
        self._forget(model)

    def _share_steps(self, byte_size: int) -> Steps[SharedMemory]:
        """Creates a shared-memory region and registers it with the server."""
        if not isinstance(byte_size, int) or isinstance(byte_size, bool):
            raise request_error("byte_size", "a whole number", byte_size)
        region = SharedMemory(byte_size)
        try:
            yield from self._call_steps(self._operations.share(region.name, region.key, byte_size))
        except BaseException:
            region.close()
            raise
        self._regions = (*self._regions, region)
        return region

    def _unshare_steps(self, region: SharedMemory) -> Steps[None]:
        """Unregisters a shared-memory region."""
        self._regions = tuple(other for other in self._regions if other is not region)
        yield from self._call_steps(self._operations.unshare(region.name))

    def _live_steps(self, timeout_s: float | None) -> Steps[bool]:
        """Whether the server answers."""
        return self._probe_steps(self._operations.live(), timeout_s)

    def _ready_steps(self, model: str | None, version: str, timeout_s: float | None) -> Steps[bool]:
        """Whether the server is ready, or a model of it."""
        if model is not None:
            return self._probe_steps(self._operations.model_ready(model_name(model), version), timeout_s)
        if version:
            raise InvalidArgument(f"version: expected a model beside it, got {version!r} alone")
        return self._probe_steps(self._operations.ready(), timeout_s)

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
        return call.over_http() if self.endpoint.wire == "http" else None

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
        except ValueError as error:
            raise TransportError(f"the answer of {self.endpoint} to {call.path} cannot be read: {error}") from error

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

    def _learn(self, model: str, version: str, signature: Signature) -> Signature:
        self._signatures[model, version] = signature
        if not version:
            self._plans.pop(model, None)
            if signature.is_plain:
                inputs = [(spec.name, spec.datatype, spec.shape) for spec in signature.inputs.values()]
                self._plans[model] = ClientPlan(model, inputs)
        return signature

    def _forget(self, model: str) -> None:
        """Drops all signatures of a model, which a reload may change."""
        for key in [key for key in self._signatures if key[0] == model]:
            del self._signatures[key]
        self._plans.pop(model, None)


def result_of(request: PreparedRequest | TransportRequest, answer: Answer) -> dict[str, Array] | Array:
    """The result of `infer`."""
    return request.result(answer.outputs)


def _repeat_steps(attempts: Attempts, step: Callable[[float | None], Step]) -> Steps[Any]:
    """Repeats a step while the retry policy allows it; `step` takes the time that is left."""
    while True:
        try:
            return (yield step(attempts.left_s()))
        except AlipesError as error:
            wait_s = attempts.after(error)
        yield Pause(wait_s)


def _listed(model: str, names: Collection[str]) -> str:
    return nearest_first(model, names) if names else "no models"


def _is_strange(error: AlipesError) -> bool:
    """Whether something is there that does not answer as a server does."""
    return error.reached if isinstance(error, TransportError) else isinstance(error, Unsupported)


def _config_text(config: Mapping[str, Any] | str | None) -> str | None:
    """A model's configuration as JSON text."""
    return config if config is None or isinstance(config, str) else json.dumps(config)


def _unlimited(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else timeout_s

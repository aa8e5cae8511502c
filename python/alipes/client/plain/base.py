"""Both plain clients without their driver: the verbs as steps, and the models that are known."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from alipes._core import ClientPlan
from alipes.client.arguments import check_request, model_name, request_error
from alipes.client.plain.called import CalledFunction, CalledValues
from alipes.client.plain.cuda_regions import CudaRegions
from alipes.client.plain.operations import Call
from alipes.client.plain.options import Options, sequence_header
from alipes.client.plain.request import Answer, Array, Inputs, Outputs, PreparedRequest, check_tensors
from alipes.client.plain.responses import Reception, ResponseSource
from alipes.client.plain.retry import NOT_BY_NAME, Failure
from alipes.client.plain.server_calls import ServerCalls, repeat_steps
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.steps import OpenStream, Pause, Steps, Where
from alipes.client.plain.transport import TransportReception, TransportRequest
from alipes.client.signature import Signature, read_signature
from alipes.client.triton_aliases import TritonAliases
from alipes.config.nearest import nearest_first
from alipes.errors import AlipesError, InferError, InvalidArgument, NotFound, TransportError, Unsupported
from alipes.types import IndexEntry, TrafficSplit

__all__ = ["EXPLICIT_MEND", "PlainClient", "result_of"]

T = TypeVar("T")

EXPLICIT_MEND: Final = "start the server with --model-control-mode explicit to load and unload models by name"

_NO_MODEL: Final = re.compile(
    rf"failed to poll from model repository$|^requested model '.*' is not available$|{re.escape(NOT_BY_NAME)}"
)
"""Refusals to load a model and to count its requests, where there is none of its name; and for other reasons.
Source: Triton, recorded.
"""


_DECOUPLED: Final = "doesn't support models with decoupled transaction policy"
"""The end of a refusal to answer a request that may have many responses. Source: Triton, recorded."""


class PlainClient(ServerCalls, TritonAliases, CudaRegions):
    """The verbs, each written once as steps; the driver of the steps belongs to the subclass."""

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
            response = yield from repeat_steps(attempts, request.step)
        except InferError as error:
            error.model = model
            error.request_id = options.request_id or None
            if _DECOUPLED in error.message:
                error.message = f"{error.message}: ask model '{model}' with stream(), over gRPC"
                error.args = (error.message,)
            raise
        return request, request.answer(response)

    def _called_steps(self, name: str, values: Sequence[Any], arguments: Mapping[str, Any]) -> Steps[CalledFunction]:
        """Reads the arguments of a call by the function's signature, which is fetched once."""
        model_name(name)
        if self._transport is not None:
            if values:
                raise InvalidArgument(f"name the arguments of function '{name}': nothing says their order here")
            return CalledFunction(None, arguments)
        known = self._signatures.get((name, ""))
        if known is not None:
            try:
                return CalledFunction.of(known, values, arguments)
            except InvalidArgument:
                # The function may have been loaded anew with other arguments since its signature was fetched.
                if (yield from self._signature_steps(name, "")) == known:
                    raise
        return CalledFunction.of((yield from self._signature_steps(name, "")), values, arguments)

    def _value_steps(self, name: str, called: CalledFunction) -> Steps[Any]:
        """Calls a function that gives one value."""
        _, answer = yield from self._infer_steps(name, called.inputs, None, None, Options())
        return called.value(answer.outputs)

    def _values_steps(self, name: str, called: CalledFunction) -> Steps[ResponseSource]:
        """Calls a function that gives any number of values."""
        return CalledValues((yield from self._stream_steps(name, called.inputs, None, None, Options())), called)

    def _stream_steps(
        self, model: str, inputs: Inputs, outputs: Outputs | None, timeout_s: float | None, options: Options
    ) -> Steps[ResponseSource]:
        """Sends a request whose responses are received one after the other."""
        if isinstance(outputs, Mapping):
            raise request_error(
                "outputs", "a list of names, as responses to stream() are written to no memory", outputs
            )
        attempts = self._attempts(timeout_s, repeatable=False)
        if self._transport is not None:
            asks = TransportRequest(self._transport, model, inputs, outputs, options)
            responses = yield from repeat_steps(attempts, asks.stream_step)
            return TransportReception(iter(responses), asks)
        yield from self._need_grpc_steps()
        own = [*self._headers, *options.headers]
        headers = [*own, *sequence_header(options.sequence_id, own)]
        where = (self.endpoint.address, self._connect_timeout_s, headers, self._encryption)
        try:
            request = yield from self._prepare_steps(model, inputs, outputs, options, ())
            yield from self._need_grpc_steps()  # the address may have turned out to be one of HTTP
            stream = yield from repeat_steps(attempts, lambda _: OpenStream(where, request.on_stream()))
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
        try:
            signature = read_signature(metadata, config)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            text = f"what {self.endpoint} says of model '{model}' cannot be read: expected the metadata of a model"
            raise TransportError(text) from error
        return self._learn(model, version, signature)

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
            error.model = error.model or model or None
            if NOT_BY_NAME in error.message:
                refusal, error.message = error.message, f"{error.message}: {EXPLICIT_MEND}"
                error.args = (error.message,)
            else:
                refusal = str(error)
            try:
                names = {entry.name for entry in (yield from self._call_steps(self._operations.index()))}
            except AlipesError:
                raise error from None
            if model in names or not model:
                raise
            raise NotFound(f"{refusal}; the server has {_listed(model, names)}", model=model) from error

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
        call = self._operations.unload(model_name(model), dependents)
        yield from self._about_steps(model, call, _unlimited(timeout_s))
        self._forget(model)

    def _traffic_steps(self, model: str, timeout_s: float | None) -> Steps[TrafficSplit]:
        """Fetches how the requests for a model are divided among its versions."""
        return (yield from self._about_steps(model, self._operations.traffic(model_name(model)), timeout_s))

    def _set_traffic_steps(self, model: str, split: TrafficSplit, timeout_s: float | None) -> Steps[TrafficSplit]:
        """Divides them otherwise."""
        call = self._operations.set_traffic(model_name(model), split)
        return (yield from self._about_steps(model, call, timeout_s))

    def _traffic_outcomes_steps(self, model: str, timeout_s: float | None) -> Steps[dict[int, dict[str, Any]]]:
        """Fetches what became of the requests since they are divided so."""
        return (yield from self._about_steps(model, self._operations.traffic_outcomes(model_name(model)), timeout_s))

    def _share_steps(self, byte_size: int) -> Steps[SharedMemory]:
        """Creates a shared-memory region and registers it with the server."""
        if not isinstance(byte_size, int) or isinstance(byte_size, bool):
            raise request_error("byte_size", "a whole number", byte_size)
        region = SharedMemory(byte_size)
        try:
            yield from self._register_steps(region)
        except BaseException:
            region.close()
            raise
        region.remove_name()
        return region

    def _register_steps(self, region: SharedMemory) -> Steps[None]:
        """Registers a shared-memory region with the server."""
        yield from self._call_steps(self._operations.share(region.name, region.key, region.byte_size))
        self._regions = (*self._regions, region)

    def _unshare_steps(self, region: SharedMemory, timeout_s: float | None = None) -> Steps[None]:
        """Unregisters a shared-memory region."""
        self._regions = tuple(other for other in self._regions if other is not region)
        yield from self._call_steps(self._operations.unshare(region.name), timeout_s)

    def _server_metadata_steps(self, timeout_s: float | None) -> Steps[dict[str, Any]]:
        """Fetches the server's name, version and extensions."""
        return self._call_steps(self._operations.server_metadata(), timeout_s)

    def _models_steps(self, timeout_s: float | None) -> Steps[list[IndexEntry]]:
        """Fetches the repository's models with their states."""
        return self._call_steps(self._operations.index(), timeout_s)

    def _share_cuda_steps(
        self, name: str, handle: bytes, device_id: int, byte_size: int, timeout_s: float | None
    ) -> Steps[None]:
        """Registers memory of a GPU, by its handle of 64 bytes."""
        return self._call_steps(self._operations.share_cuda(name, handle, device_id, byte_size), timeout_s)

    def _cuda_regions_steps(self, name: str, timeout_s: float | None) -> Steps[list[dict[str, Any]]]:
        """Fetches a region on a GPU, or all where the name is empty."""
        return self._call_steps(self._operations.cuda_regions(name), timeout_s)

    def _unshare_cuda_steps(self, name: str, timeout_s: float | None) -> Steps[None]:
        """Unregisters memory of a GPU, or all where the name is empty."""
        return self._call_steps(self._operations.unshare_cuda(name), timeout_s)

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


def _listed(model: str, names: Collection[str]) -> str:
    return nearest_first(model, names) if names else "no models"


def _config_text(config: Mapping[str, Any] | str | None) -> str | None:
    """A model's configuration as JSON text."""
    return config if config is None or isinstance(config, str) else json.dumps(config)


def _unlimited(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else timeout_s

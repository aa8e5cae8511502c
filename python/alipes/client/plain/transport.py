"""A transport: one function that answers a client's calls in the place of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from alipes.client.plain.operations import Call
from alipes.client.plain.options import Options
from alipes.client.plain.request import Answer, Array, Inputs, Outputs, named_outputs
from alipes.client.plain.steps import TransportStep
from alipes.client.region_tensor import RegionTensor
from alipes.errors import TransportError, Unsupported
from alipes.types import IndexEntry, TrafficSplit

__all__ = [
    "Transport",
    "TransportCall",
    "TransportOperations",
    "TransportReception",
    "TransportRequest",
    "sent_array",
]

T = TypeVar("T")
Document = dict[str, Any]

Verb: TypeAlias = Literal[
    "infer",
    "stream",
    "live",
    "ready",
    "server_metadata",
    "metadata",
    "config",
    "statistics",
    "models",
    "load",
    "unload",
]


@dataclass(frozen=True, slots=True)
class TransportCall:
    """A call of a client that a transport answers.

    Attributes:
        verb: What is called, by the name of the client's method: `infer`, `stream`, `metadata`, `load` ...
        model: The model's name; empty where the call is about the server.
        version: Its version as text; empty leaves the choice to the server.
        inputs: Of `infer` and `stream`, as the caller passed them: arrays by the name of their input, or one alone.
        outputs: Of `infer` and `stream`: names of the requested outputs; `None` is all.
        options: Of `infer` and `stream`: further fields of the request.
        timeout_s: The time that is left for the call; `None` is no limit.
        arguments: What other calls say: `config` and `files` of `load`, `dependents` of `unload`.
    """

    verb: Verb
    model: str = ""
    version: str = ""
    inputs: Inputs | None = None
    outputs: Sequence[str] | None = None
    options: Options = field(default_factory=Options)
    timeout_s: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


Transport: TypeAlias = Callable[[TransportCall], Any]
"""Answers a call, or raises an error of `alipes.errors` as a server's answer would.

`infer` is answered with arrays by the name of their output, or the array alone; `stream` with an iterable of these; any
other call with what the client's method returns.
"""


def _no_answer(_: TransportCall) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _TransportedCall(Call[T]):
    """A control call that a transport answers."""

    transport: Transport = _no_answer
    call: TransportCall = TransportCall("live")

    def step(self, timeout_s: float | None) -> TransportStep:
        """One attempt."""
        return TransportStep(self.transport, replace(self.call, timeout_s=timeout_s))


class TransportRequest:
    """An inference request for a transport, whose inputs nobody has checked."""

    def __init__(
        self, transport: Transport, model: str, inputs: Inputs, outputs: Outputs | None, options: Options
    ) -> None:
        """Takes what the caller passed."""
        self.single = not isinstance(inputs, Mapping)
        self.model, self.request_id = model, options.request_id
        self._transport = transport
        values = {name: _copied(value) for name, value in inputs.items()} if isinstance(inputs, Mapping) else inputs
        passed = [inputs, *_values(inputs), *_values(outputs)]
        if any(isinstance(value, RegionTensor) for value in passed):
            raise Unsupported("a transport has no shared memory: pass arrays of the program's own")
        names = None if outputs is None else list(outputs)
        self._call = TransportCall("infer", model, options.version, _copied(values), names, options)

    def step(self, timeout_s: float | None) -> TransportStep:
        """One attempt."""
        return TransportStep(self._transport, replace(self._call, timeout_s=timeout_s))

    def stream_step(self, timeout_s: float | None) -> TransportStep:
        """One attempt at a stream of responses."""
        return TransportStep(self._transport, replace(self._call, verb="stream", timeout_s=timeout_s))

    def answer(self, response: Any) -> Answer:
        """Reads the transport's answer."""
        return Answer(self.outputs(response), self._call.version or "1", self.request_id, {})

    def outputs(self, response: Any) -> dict[str, Array]:
        """Outputs by name, as arrays that cannot be written to, as those of a server."""
        found = response if isinstance(response, Mapping) else {"output_0": response}
        if any(value is None for value in found.values()):
            raise TransportError(f"the transport's answer to infer of model '{self.model}' cannot be read: it has None")
        return named_outputs(self.model, {name: sent_array(value) for name, value in found.items()})

    def result(self, outputs: dict[str, Array]) -> dict[str, Array] | Array:
        """What the caller gets: all outputs by name, or the only one where an array was passed alone."""
        return next(iter(outputs.values())) if self.single and len(outputs) == 1 else outputs


class TransportReception:
    """The responses of a transport to one request."""

    def __init__(self, responses: Iterator[Any], request: TransportRequest) -> None:
        """Takes the transport's answer."""
        self._responses = responses
        self._request = request

    def __next__(self) -> Any:
        """The outputs of the next response."""
        return self._request.result(self._request.outputs(next(self._responses)))

    async def __anext__(self) -> Any:
        """The outputs of the next response."""
        for response in self._responses:
            return self._request.result(self._request.outputs(response))
        raise StopAsyncIteration

    def close(self) -> None:
        """Closes a generator."""
        close = getattr(self._responses, "close", None)
        if close is not None:
            close()


class TransportOperations:
    """Control calls that a transport answers."""

    def __init__(self, transport: Transport) -> None:
        """Takes the transport."""
        self._transport = transport

    def live(self) -> Call[bool]:
        """Whether the server answers."""
        return self._call(TransportCall("live"), bool)

    def ready(self) -> Call[bool]:
        """Whether the server is ready."""
        return self._call(TransportCall("ready"), bool)

    def model_ready(self, model: str, version: str) -> Call[bool]:
        """Whether a model is ready."""
        return self._call(TransportCall("ready", model, version), bool)

    def server_metadata(self) -> Call[Document]:
        """Name, version, extensions."""
        return self._call(TransportCall("server_metadata"), dict)

    def metadata(self, model: str, version: str) -> Call[Document]:
        """A model's inputs and outputs."""
        return self._call(TransportCall("metadata", model, version), dict)

    def config(self, model: str, version: str) -> Call[Document]:
        """A model's configuration."""
        return self._call(TransportCall("config", model, version), dict)

    def statistics(self, model: str, version: str) -> Call[list[Document]]:
        """Statistics of a model, or of all."""
        return self._call(TransportCall("statistics", model, version), list)

    def index(self) -> Call[list[IndexEntry]]:
        """The repository index."""
        return self._call(TransportCall("models"), list)

    def load(self, model: str, config: str | None, files: Mapping[str, bytes]) -> Call[None]:
        """Loads a model."""
        return self._call(TransportCall("load", model, arguments={"config": config, "files": files}), _nothing)

    def unload(self, model: str, dependents: bool) -> Call[None]:
        """Unloads a model."""
        return self._call(TransportCall("unload", model, arguments={"dependents": dependents}), _nothing)

    def traffic(self, model: str) -> Call[TrafficSplit]:
        """Refuses: nothing is divided."""
        raise Unsupported("a transport has no versions to divide requests among")

    def set_traffic(self, model: str, split: TrafficSplit) -> Call[TrafficSplit]:
        """Refuses: nothing is divided."""
        raise Unsupported("a transport has no versions to divide requests among")

    def traffic_outcomes(self, model: str) -> Call[dict[int, Document]]:
        """Refuses: nothing is divided."""
        raise Unsupported("a transport has no versions to divide requests among")

    def share(self, region: str, key: str, byte_size: int) -> Call[None]:
        """Refuses to register shared memory."""
        raise Unsupported("a transport has no shared memory: pass arrays of the program's own")

    def unshare(self, region: str) -> Call[None]:
        """Unregisters nothing: no region was registered."""
        raise Unsupported("a transport has no shared memory")

    def share_cuda(self, region: str, handle: bytes, device_id: int, byte_size: int) -> Call[None]:
        """Refuses to register memory of a GPU."""
        raise Unsupported("a transport has no shared memory: pass arrays of the program's own")

    def cuda_regions(self, region: str) -> Call[list[dict[str, Any]]]:
        """Shows nothing: no region was registered."""
        raise Unsupported("a transport has no shared memory")

    def unshare_cuda(self, region: str) -> Call[None]:
        """Unregisters nothing: no region was registered."""
        raise Unsupported("a transport has no shared memory")

    def _call(self, call: TransportCall, read: Callable[[Any], T]) -> Call[T]:
        return _TransportedCall(call.verb, None, read, transport=self._transport, call=call)


def sent_array(value: Any) -> Array:
    """A value as it arrives on the other side: a copy that cannot be written to, with texts as bytes."""
    array = np.array(value)
    if array.dtype.kind in "UO":
        encoded = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        texts = np.empty(len(encoded), np.object_)
        texts[:] = encoded
        array = texts.reshape(array.shape)
    array.flags.writeable = False
    return array


def _values(passed: Any) -> Iterable[Any]:
    return passed.values() if isinstance(passed, Mapping) else ()


def _copied(value: Any) -> Any:
    """A value that stays as it is when the caller writes to its array."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _nothing(_: Any) -> None:
    return None

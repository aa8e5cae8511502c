"""An inference function as an instance of a model: requests become PyTriton's, what it returns becomes responses."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes._core import InferenceRequest, InferenceResponse, Tensor
from alipes.compat.pytriton.exceptions import PyTritonUnrecoverableError
from alipes.compat.pytriton.request import Request
from alipes.compat.pytriton.triton_model_config import TritonModelConfig
from alipes.compat.pytriton.validator import TritonResultsValidator

__all__ = ["FunctionCalls", "FunctionInstance"]

Array: TypeAlias = npt.NDArray[Any]

_LAST: Final = 1  # flag of a decoupled model's last response, as Triton counts
_TEXT_TYPES: Final = (bytes, object, np.bytes_, np.object_)

_NOT_ONE: Final = (
    "The inference callable of model `{model}` yielded {count} times, and a request has one response: bind it with "
    "ModelConfig(decoupled=True)"
)


class FunctionCalls:
    """Calls of an inference function, and what they return, checked and typed as it is sent."""

    def __init__(
        self,
        function: Callable[[list[Request]], Any],
        config: TritonModelConfig,
        strict: bool,
        stop_after: Callable[[PyTritonUnrecoverableError], None],
    ) -> None:
        """Takes a bound function.

        Args:
            function: Takes a list of requests.
            config: The model's configuration.
            strict: Whether outputs are compared with the declaration.
            stop_after: Called where the function says that it cannot go on.
        """
        self._function = function
        self._inputs = [spec.name for spec in config.inputs or ()]
        self._outputs = {spec.name: _sent_type(spec.dtype) for spec in config.outputs or ()}
        self._validator = TritonResultsValidator(config, strict)
        self._stop_after = stop_after
        self.config = config

    def request(self, arrays: Mapping[str, Array], parameters: str, wanted: Collection[str]) -> Request:
        """A request as functions see it.

        Args:
            arrays: Its inputs, in whatever order.
            parameters: Its parameters as JSON.
            wanted: The outputs that it asks for; none stands for all.
        """
        return Request(
            # In the order of the declaration, whatever the client's order is: functions unpack `inputs.values()`.
            data={name: arrays[name] for name in self._inputs if name in arrays},
            parameters=json.loads(parameters or "{}"),
            requested_output_names=[name for name in self._outputs if name in wanted] or list(self._outputs),
        )

    def start(self, unpacked: list[Request]) -> Any:
        """What the function returns, perhaps an iterator or something to await."""
        with self.reporting():
            return self._function(unpacked)

    def outputs(self, unpacked: Sequence[Request], results: Any) -> list[dict[str, Array]]:
        """The outputs that each request asks for, as they are sent.

        Raises:
            ValueError: If they do not fit the requests or, where that is wanted, the declaration.
        """
        self._validator.validate_responses(unpacked, results)
        return [
            {name: _typed(value, self._outputs[name]) for name, value in result.items() if name in wanted}
            for wanted, result in zip((one.requested_output_names or () for one in unpacked), results, strict=True)
        ]

    async def results(self, unpacked: list[Request]) -> AsyncIterator[list[dict[str, Array]]]:
        """The outputs of each result of the function, one after the other; others go on between two of them."""
        with self.reporting():
            async for results in _results(self._function(unpacked)):
                yield self.outputs(unpacked, results)

    def only(self, results: list[Any]) -> Any:
        """The only one of several results.

        Raises:
            ValueError: If there is another number of them.
        """
        if len(results) != 1:
            raise ValueError(_NOT_ONE.format(model=self.config.model_name, count=len(results)))
        return results[0]

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Notices where the function says that it cannot go on."""
        try:
            yield
        except PyTritonUnrecoverableError as error:
            self._stop_after(error)
            raise


class FunctionInstance:
    """Executes requests with an inference function: plain, a generator, `async`, or an asynchronous generator."""

    def __init__(self, calls: FunctionCalls) -> None:
        """Takes the calls of a bound function."""
        self._calls = calls

    def execute(self, requests: list[InferenceRequest]) -> Any:
        """The responses to requests, or a coroutine for them."""
        unpacked = [self._request(request) for request in requests]
        if self._calls.config.decoupled:
            return self._stream(requests, unpacked)
        returned = self._calls.start(unpacked)
        if inspect.isawaitable(returned) or inspect.isasyncgen(returned):
            return self._await(unpacked, returned)
        with self._calls.reporting():
            return self._responses(
                unpacked, self._calls.only(list(returned)) if inspect.isgenerator(returned) else returned
            )

    def _request(self, request: InferenceRequest) -> Request:
        arrays = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        return self._calls.request(arrays, request.parameters(), request.requested_output_names())

    async def _await(self, unpacked: Sequence[Request], returned: Any) -> list[InferenceResponse]:
        with self._calls.reporting():
            if inspect.isasyncgen(returned):
                return self._responses(unpacked, self._calls.only([result async for result in returned]))
            return self._responses(unpacked, await returned)

    async def _stream(self, requests: Sequence[InferenceRequest], unpacked: list[Request]) -> None:
        """Sends the responses of a decoupled model as they come."""
        senders = [request.get_response_sender() for request in requests]
        async for outputs in self._calls.results(unpacked):
            for sender, one in zip(senders, outputs, strict=True):
                sender.send(_response(one))
            if all(sender.is_cancelled() for sender in senders):
                break
        for sender in senders:
            sender.send(flags=_LAST)

    def _responses(self, unpacked: Sequence[Request], results: Any) -> list[InferenceResponse]:
        return [_response(outputs) for outputs in self._calls.outputs(unpacked, results)]


def _response(outputs: Mapping[str, Array]) -> InferenceResponse:
    return InferenceResponse([Tensor(name, array) for name, array in outputs.items()])


async def _results(returned: Any) -> AsyncIterator[Any]:
    """What a function returns, as an asynchronous iterator that lets others go on after each result."""
    if inspect.isasyncgen(returned):
        async for result in returned:
            yield result
    elif inspect.isgenerator(returned):
        for result in returned:
            yield result
            await asyncio.sleep(0)
    else:
        yield await returned if inspect.isawaitable(returned) else returned
        await asyncio.sleep(0)


def _sent_type(dtype: Any) -> np.dtype[Any]:
    """The type that an output is sent as."""
    return np.dtype(np.object_) if dtype in _TEXT_TYPES else np.dtype(dtype)


def _typed(value: Array, dtype: np.dtype[Any]) -> Array:
    """An output as the type that is declared."""
    if value.dtype.kind == "U":
        value = np.char.encode(value, "utf-8")
    return value.astype(dtype, copy=False)

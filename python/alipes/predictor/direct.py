"""A predictor at the same server, called without a connection; without a server, a function of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes import errors
from alipes.client.plain.options import read_options
from alipes.client.plain.request import named_outputs
from alipes.errors import Internal, InvalidArgument, NotFound, Unsupported
from alipes.predictor.link import PredictorCall
from alipes.worker.apps.callers import trace
from alipes.worker.apps.peers import KNOWN, call_async
from alipes.worker.apps.plan import plan_of
from alipes.worker.current import current
from alipes.worker.triton.models import is_model_ready

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse

__all__ = ["DirectLink"]

_MOST_WAITING: Final = 256
"""Calls of one process that wait at the same time; further ones wait for a thread."""

_OPTIONS: Final = frozenset({"version", "model_version", "request_id", "parameters"})
"""Fields of a request that such a call may have."""


class DirectLink:
    """Calls of models of the same server."""

    async def infer(self, call: PredictorCall, limit_s: float | None) -> Any:
        """One attempt at a call; cancelling it withdraws the call.

        Args:
            call: The call.
            limit_s: Time for it in seconds; the caller ends the wait.

        Raises:
            InferError: If the model refuses or fails.
        """
        del limit_s
        inputs = call.inputs if isinstance(call.inputs, Mapping) else {_only_input(call.model): call.inputs}
        if current.link is None:
            found = await _in_this_process(call.model, inputs)
        else:
            found = await _executed(_request(call, inputs))
        if not isinstance(call.inputs, Mapping) and len(found) == 1:
            return next(iter(found.values()))
        return named_outputs(call.model, found)

    async def is_ready(self, model: str, limit_s: float | None) -> bool:
        """Whether a model can be called."""
        del limit_s
        if current.link is None:
            return model in KNOWN
        return await asyncio.get_running_loop().run_in_executor(_threads(), is_model_ready, model)

    async def max_batch_size(self, model: str, limit_s: float) -> int:
        """Rows that a call may have, of a function of this app; 0 of any other model."""
        del limit_s
        return KNOWN[model][1].max_batch_size if model in KNOWN else 0

    async def input_axes(self, model: str, name: str, limit_s: float) -> int | None:
        """Axes of an input of a function of this app, that of the batch among them; None of any other model."""
        del limit_s
        plan = plan_of(*KNOWN[model]) if model in KNOWN else None
        found = (
            next((one.tensor for one in plan.arguments if name in ("", one.input, one.name)), None) if plan else None
        )
        return None if plan is None or found is None else len(found.dims) + plan.batched

    def close(self) -> None:
        """There is no connection to close."""

    def __str__(self) -> str:
        """The place of the server, for people."""
        return "this server"


def _only_input(model: str) -> str:
    """The name of the input of a model that is a function of this app with one argument.

    Raises:
        InvalidArgument: If it is none.
    """
    arguments = plan_of(*KNOWN[model]).arguments if model in KNOWN else ()
    if len(arguments) != 1:
        raise InvalidArgument(f"name the inputs of model '{model}' of this server: pass a dictionary of arrays")
    return arguments[0].input or arguments[0].name


async def _in_this_process(model: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a function of this process, as in a test."""
    if model not in KNOWN:
        raise NotFound(f"no model '{model}' is in this process, and there is no server to ask", model=model)
    value = await call_async(model, **inputs)
    return dict(value) if isinstance(value, Mapping) else {"output_0": np.asarray(value)}


def _request(call: PredictorCall, inputs: Mapping[str, Any]) -> InferenceRequest:
    from alipes._core import InferenceRequest, Tensor

    options = read_options(call.options)
    if set(call.options) - _OPTIONS:
        known = ", ".join(sorted(_OPTIONS))
        raise Unsupported(f"a call of a model of the same server has the options {known} alone")
    more: dict[str, Any] = {}
    if options.parameters:
        more["parameters"] = dict(options.parameters)
    if (found := trace()) is not None:
        more["trace"] = found
    return InferenceRequest(
        model_name=call.model,
        model_version=int(options.version or -1),
        request_id=options.request_id,
        inputs=[Tensor(name, _plain(value)) for name, value in inputs.items()],
        requested_output_names=call.outputs or [],
        **more,
    )


def _plain(value: Any) -> np.ndarray[Any, Any]:
    array = np.ascontiguousarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


async def _executed(request: InferenceRequest) -> dict[str, Any]:
    # An iterator over responses can be closed while a thread waits for it; a single response cannot be withdrawn.
    responses = request.exec(decoupled=True)
    loop = asyncio.get_running_loop()
    try:
        response = await loop.run_in_executor(_threads(), responses.take)
    finally:
        responses.close()
    if response is None:
        raise Internal("the model has ended the call without a response")
    return _outputs(response)


def _outputs(response: InferenceResponse) -> dict[str, Any]:
    if (error := response.error()) is not None:
        from alipes._core import failure_exception

        raise getattr(errors, failure_exception(error))(error.message())
    return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads on which calls wait; each is started when it is needed."""
    return ThreadPoolExecutor(_MOST_WAITING, "alipes-predictor")

"""Calls from one model to another: by name, with the arguments that the other's annotations have."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes.errors import Internal, NotFound
from alipes.worker.apps.exchange import Request
from alipes.worker.apps.forwarded import parameters_of
from alipes.worker.apps.options import MAX_CONCURRENCY, Options
from alipes.worker.apps.plan import DOCUMENT, METHODS, Plan, plan_of
from alipes.worker.apps.tensor_types import TensorType
from alipes.worker.current import current

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse

__all__ = ["KNOWN", "call", "call_async", "call_step", "stream_step"]

KNOWN: Final[dict[str, tuple[Any, Options]]] = {}
"""The decorated functions and classes of this process by their names; what is decorated last counts."""

_objects: Final[dict[str, Any]] = {}


def call(name: str, /, **arguments: Any) -> Any:
    """Call another model of the same server, and wait for what it returns.

    Within a server the call is a request of its own, with its queue, its batch and its statistics. Without one, as in
    a test, the function of that name is called in this process.

    Args:
        name: The model. One that no `@alipes.model` of this app stands above gets arrays as its inputs.
        **arguments: Its arguments; of one that takes batches, one row.

    Returns:
        What the function returns; of a stream, an iterator; of a model that is no function of this app, its outputs as
        arrays by name.

    Raises:
        InferError: If the model refuses or fails, with its text: `NotFound`, `NotReady`, `Overloaded` and the like,
            as the model itself raises them; `Internal` where it fails, or the arguments do not fit it. Without a
            server, what it raises.

    Examples:
        >>> import alipes
        >>> @alipes.model
        ... def double(x: int) -> int:
        ...     return 2 * x
        >>> @alipes.model
        ... def quadruple(x: int) -> int:
        ...     return alipes.call("double", x=alipes.call("double", x=x))
        >>> quadruple(3)
        12
    """
    if current.link is None:
        found = _call_here(name, arguments)
        return asyncio.run(found) if inspect.iscoroutine(found) else found
    plan = _plan(name)
    if plan is not None and plan.is_stream:
        return _values(_request(name, arguments, plan), plan)
    return _value(_request(name, arguments, plan).exec(), plan)


async def call_async(name: str, /, **arguments: Any) -> Any:
    """`call` for `async` functions: others run while the answer is awaited. Streams are for `call` alone.

    Args:
        name: The model.
        **arguments: Its arguments.

    Raises:
        InferError: As `call` does.
    """
    return await call_step(name, arguments, None)


async def call_step(name: str, arguments: Mapping[str, Any], request: Request | None) -> Any:
    """`call_async` of a step, which is given the HTTP request where it asks for it.

    Args:
        name: The model.
        arguments: Its arguments.
        request: The HTTP request.

    Raises:
        InferError: As `call` does.
    """
    if current.link is None:
        found = _call_here(name, arguments, request)
        return await found if inspect.isawaitable(found) else found
    plan = _plan(name)
    return _value(await _request(name, arguments, plan, request).async_exec(), plan)


async def stream_step(name: str, arguments: Mapping[str, Any], request: Request | None) -> AsyncIterator[Any]:
    """The same for a step that is a stream: its values, each as it comes.

    Args:
        name: The model.
        arguments: Its arguments.
        request: The HTTP request.

    Raises:
        InferError: As `call` does.
    """
    if current.link is None:
        found = _call_here(name, arguments, request)
        async for value in found if hasattr(found, "__aiter__") else _asynchronous(found):
            yield value
        return
    plan = _plan(name)
    assert plan is not None, "a step is known to the process that leads to it"
    responses = _request(name, arguments, plan, request).exec(decoupled=True)
    loop = asyncio.get_running_loop()
    try:
        while (response := await loop.run_in_executor(_threads(), responses.take)) is not None:
            if response.has_error() or response.output_tensors():
                yield _value(response, plan)
    finally:
        responses.close()


async def _asynchronous(values: Iterator[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads on which streams wait for their next values; each is started when it is needed."""
    return ThreadPoolExecutor(MAX_CONCURRENCY, "alipes-step")


def _plan(name: str) -> Plan | None:
    return plan_of(*KNOWN[name]) if name in KNOWN else None


def _call_here(name: str, arguments: Mapping[str, Any], request: Request | None = None) -> Any:
    if name not in KNOWN:
        raise NotFound(f"no model '{name}' is in this process, and there is no server to ask", model=name)
    served, options = KNOWN[name]
    if options.before is not None or options.after is not None:
        from alipes.worker.apps.steps import steps_of  # it needs this module

        KNOWN.update({key: (step.served, step.options) for key, step in steps_of(served, options).items()})
        served, options = KNOWN[name]
    plan = plan_of(served, options)
    if plan.request:
        arguments = {plan.request: request or Request(), **arguments}
    if isinstance(served, type):
        if name not in _objects:
            _objects[name] = _made(served)
        method = next(one for one in METHODS if callable(getattr(served, one, None)))
        served = getattr(_objects[name], method)
    if not plan.batched:
        return served(**arguments)
    stacks = {one.name: one.stacks for one in plan.arguments}
    rows = {key: np.stack([value]) if stacks[key] else [value] for key, value in arguments.items()}
    from alipes.worker.apps.joined import part  # it needs numpy alone; few processes come here

    return part(served(**rows), 0)


def _made(served: type[Any]) -> Any:
    made = served(device="cpu") if "device" in inspect.signature(served).parameters else served()
    setup = getattr(made, "setup", None)
    if callable(setup):
        setup(*["cpu"][: len(inspect.signature(setup).parameters)])
    return made


def _request(
    name: str, arguments: Mapping[str, Any], plan: Plan | None, request: Request | None = None
) -> InferenceRequest:
    from alipes._core import InferenceRequest, Tensor

    if plan is None:
        inputs = [Tensor(key, _plain(value)) for key, value in arguments.items()]
        return InferenceRequest(model_name=name, inputs=inputs, requested_output_names=[])
    more: dict[str, Any] = {"model_name": name}
    if plan.request and request is not None:
        more["parameters"] = parameters_of(request)
    if plan.has_tensors:
        declared = {one.name: one.tensor for one in plan.arguments}
        if unknown := sorted(arguments.keys() - declared.keys()):
            raise TypeError(f"model '{name}' has no argument '{unknown[0]}'")
        inputs = [Tensor(key, _tensor(value, declared[key], plan)) for key, value in arguments.items()]
        return InferenceRequest(inputs=inputs, requested_output_names=list(plan.outputs or ()), **more)
    from alipes.worker.apps.documents import encode

    body = np.empty((1, 1) if plan.batched else 1, object)
    body.fill(encode(dict(arguments)))
    return InferenceRequest(inputs=[Tensor(DOCUMENT, body)], requested_output_names=[DOCUMENT], **more)


def _plain(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _tensor(value: Any, tensor: TensorType | None, plan: Plan) -> np.ndarray:
    from alipes.worker.apps.tensors import fitted

    assert tensor is not None, "a plan with tensors has one for each argument"
    array = fitted(value, tensor.datatype)
    if tensor.form == "scalar" or tensor.is_row:
        array = array.reshape(1)
    return array[None] if plan.batched else array


def _values(request: InferenceRequest, plan: Plan) -> Iterator[Any]:
    for response in request.exec(decoupled=True):
        if response.has_error() or response.output_tensors():  # the end may come without an output
            yield _value(response, plan)


def _value(response: InferenceResponse, plan: Plan | None) -> Any:
    error = response.error()
    if error is not None:
        from alipes.worker.apps.statuses import error_of_call

        raise error_of_call(error)
    outputs = {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}
    if plan is None:
        return outputs
    if not plan.has_tensors:
        return _read(outputs[DOCUMENT].reshape(-1)[0], plan)
    assert plan.outputs is not None, "a plan with tensors has outputs"
    from alipes.worker.apps.tensors import argument_of

    values = {}
    for name, tensor in plan.outputs.items():
        found = argument_of(outputs[name], tensor)
        values[name] = found[0] if plan.batched else found
    return _assembled(values, plan.result)


def _assembled(values: Mapping[str, Any], result: Any) -> Any:
    """Outputs as the annotation of the result has them."""
    if isinstance(result, type) and (dataclasses.is_dataclass(result) or hasattr(result, "_fields")):
        return result(**values)
    if isinstance(result, type) and issubclass(result, dict):
        return dict(values)
    if list(values) == ["output_0"] and getattr(result, "__origin__", None) is not tuple:
        return values["output_0"]
    return tuple(values.values())


def _read(body: bytes, plan: Plan) -> Any:
    import msgspec

    from alipes.worker.apps.annotations import readable
    from alipes.worker.apps.custom import from_json, is_picture

    if plan.result is bytes:
        return body
    if is_picture(plan.result):
        return from_json(plan.result, body)
    try:
        return msgspec.json.decode(body, type=readable(plan.result), dec_hook=from_json)
    except msgspec.ValidationError as error:
        raise Internal(f"the answer does not fit the annotation of the result: {error}") from error

"""`before=` and `after=`: a model as three in processes of their own, with one in front that leads through them.

Each step has its own instances, queue, batches and statistics, so a slow one gets more processes than the others. The
one in front holds requests and no step; it is `async`, and answers the endpoint.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.worker.apps.exchange import Request
from alipes.worker.apps.explainer import explained_by
from alipes.worker.apps.options import Options
from alipes.worker.apps.peers import call_step, stream_step
from alipes.worker.apps.plan import Plan, plan_of
from alipes.worker.explanations import EXPLAIN

__all__ = ["Step", "steps_of"]

_REQUEST: Final = "alipes_request"
"""Argument of the function in front, where one of the steps is given the request."""


@dataclass(frozen=True, slots=True)
class Step:
    """One model that is made of a decorated function.

    Attributes:
        served: What it calls.
        options: Its options.
        has_endpoint: Whether `POST /<name>` reaches it.
    """

    served: Any
    options: Options
    has_endpoint: bool = True


def steps_of(served: Any, options: Options) -> dict[str, Step]:
    """The models that a decorated function or class becomes, by their names.

    Raises:
        ConfigError: If its steps do not fit together.
    """
    if options.before is None and options.after is None:
        return {options.name: Step(served, options)}
    name = options.name
    bare = replace(options, before=None, after=None, explain=None, example=None)
    steps = {f"{name}.main": Step(served, replace(bare, name=f"{name}.main"), has_endpoint=False)}
    single = Options(name=name, device="cpu", timeout_s=options.timeout_s)
    for key, function, count in (
        ("before", options.before, options.before_instances),
        ("after", options.after, options.after_instances),
    ):
        if function is not None:
            step = replace(single, name=f"{name}.{key}", instances=count)
            steps[step.name] = Step(function, step, has_endpoint=False)
    plans = {key: plan_of(one.served, one.options) for key, one in steps.items()}
    # It only waits for the others, each of which has its own time.
    front = replace(single, concurrency=options.concurrency, timeout_s=0.0, example=options.example)
    explain = explained_by(served, options)
    if explain is not None and not (plans[f"{name}.main"].is_stream and options.explain is None):
        own = replace(bare, name=f"{name}.{EXPLAIN}", instances=1, max_batch_size=0, max_delay_s=0.0)
        function = explain if options.explain is not None else _explaining(served)
        steps[own.name] = Step(function, own, has_endpoint=False)
        front = replace(front, explain=_leading_to(own.name, plan_of(function, own), inspect.getdoc(explain)))
    steps[name] = Step(_front(name, plans, inspect.getdoc(served)), front)
    return steps


def _explaining(served: type[Any]) -> type[Any]:
    """A class that answers with what its method explains: an object of its own, in a process of its own."""
    make: Callable[..., type[Any]] = type(served)
    return make(served.__name__, (served,), {"predict": getattr(served, EXPLAIN)})


def _leading_to(step: str, plan: Plan, text: str | None) -> Callable[..., Any]:
    """A function with the arguments and the result of a step, which it asks."""

    async def lead(**arguments: Any) -> Any:
        request = arguments.pop(_REQUEST, None)
        return await call_step(step, arguments, request)

    return _described(lead, step, _parameters(plan, wants_request=bool(plan.request)), plan.result, text)


def _front(name: str, plans: Mapping[str, Plan], text: str | None) -> Callable[..., Any]:
    """The function in front of the steps, with the arguments of the first and the result of the last."""
    order = [f"{name}.{key}" for key in ("before", "main", "after") if f"{name}.{key}" in plans]
    for step in order:
        if plans[step].is_stream and step != f"{name}.main":
            raise ConfigError(
                f"model '{name}': {step} is a stream, which only the model itself can be: let it return a value; "
                "after= is called for each value of the model's stream"
            )
    wants_request = any(plan.request for plan in plans.values())

    async def lead(**arguments: Any) -> Any:
        request = arguments.pop(_REQUEST, None)
        value: Any = None
        for at, step in enumerate(order):
            values = arguments if at == 0 else _arguments(value, plans[step], step)
            value = await call_step(step, values, request)
        return value

    async def lead_stream(**arguments: Any) -> AsyncIterator[Any]:
        request = arguments.pop(_REQUEST, None)
        if order[0] != f"{name}.main":
            found = await call_step(order[0], arguments, request)
            arguments = _arguments(found, plans[f"{name}.main"], f"{name}.main")
        async for value in stream_step(f"{name}.main", arguments, request):
            if order[-1] == f"{name}.after":
                values = _arguments(value, plans[order[-1]], order[-1])
                yield await call_step(order[-1], values, request)
            else:
                yield value

    first, last = plans[order[0]], plans[order[-1]]
    is_stream = plans[f"{name}.main"].is_stream
    result = AsyncIterator[last.result] if is_stream else last.result  # type: ignore[name-defined]
    return _described(lead_stream if is_stream else lead, name, _parameters(first, wants_request), result, text)


def _parameters(plan: Plan, wants_request: bool) -> list[inspect.Parameter]:
    """The parameters of a function in front of a step."""
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.required else one.default,
            annotation=one.annotation,
        )
        for one in plan.arguments
    ]
    if wants_request:
        parameters.append(inspect.Parameter(_REQUEST, inspect.Parameter.KEYWORD_ONLY, annotation=Request))
    return parameters


def _described(
    leading: Callable[..., Any], name: str, parameters: list[inspect.Parameter], result: Any, text: str | None
) -> Callable[..., Any]:
    """A function that says of itself what its annotations would."""
    leading.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    leading.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": result}
    leading.__name__ = leading.__qualname__ = name
    leading.__doc__ = text
    return leading


def _arguments(value: Any, plan: Plan, step: str) -> dict[str, Any]:
    """What one step returned as the arguments of the next: by name, by order, or the only one."""
    names = [one.name for one in plan.arguments]
    if len(names) == 1:
        return {names[0]: value}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple) and len(value) <= len(names):
        return dict(zip(names, value, strict=False))
    raise TypeError(f"{step} takes {', '.join(names)}, and the step before returned a {type(value).__name__}")

"""`before=` and `after=`: a model as three in processes of their own, with one in front that leads through them.

Each step has its own instances, queue, batches and statistics, so a slow one gets more processes than the others. The
one in front holds requests and no step; it is `async`, and answers the endpoint.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from alipes.errors import ConfigError
from alipes.worker.apps.options import Options
from alipes.worker.apps.peers import call_async
from alipes.worker.apps.plan import Plan, plan_of

__all__ = ["Step", "steps_of"]


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
    bare = replace(options, before=None, after=None, example=None)
    steps = {f"{name}.main": Step(served, replace(bare, name=f"{name}.main"), has_endpoint=False)}
    single = Options(name=name, device="cpu")
    for key, function, count in (
        ("before", options.before, options.before_instances),
        ("after", options.after, options.after_instances),
    ):
        if function is not None:
            step = replace(single, name=f"{name}.{key}", instances=count)
            steps[step.name] = Step(function, step, has_endpoint=False)
    front = replace(single, concurrency=options.concurrency, example=options.example)
    steps[name] = Step(_front(name, {key: plan_of(one.served, one.options) for key, one in steps.items()}), front)
    return steps


def _front(name: str, plans: Mapping[str, Plan]) -> Callable[..., Any]:
    """The function in front of the steps, with the arguments of the first and the result of the last."""
    order = [f"{name}.{key}" for key in ("before", "main", "after") if f"{name}.{key}" in plans]
    for step in order:
        plan = plans[step]
        if plan.is_stream or plan.is_async or plan.request:
            raise ConfigError(
                f"model '{name}': {step} is a stream, async or takes the request, which no step of several can; "
                "leave out before= and after=, or make it an ordinary function"
            )

    async def lead(**arguments: Any) -> Any:
        value: Any = None
        for at, step in enumerate(order):
            value = await call_async(step, **(arguments if at == 0 else _arguments(value, plans[step], step)))
        return value

    first, last = plans[order[0]], plans[order[-1]]
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.required else one.default,
            annotation=one.annotation,
        )
        for one in first.arguments
    ]
    lead.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    lead.__annotations__ = {one.name: one.annotation for one in first.arguments} | {"return": last.result}
    lead.__name__ = lead.__qualname__ = name
    lead.__doc__ = None
    return lead


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

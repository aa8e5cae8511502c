"""Options that several commands have: the fields of a dataclass, which each command takes as one parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_type_hints

__all__ = ["with_option_groups"]

T = TypeVar("T")


def with_option_groups(command: Callable[..., T]) -> Callable[..., T]:
    """The same command with an option for each field of its parameters that are dataclasses.

    Args:
        command: Some of its parameters are annotated with a dataclass whose fields are annotated as options.
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups = {one.name: list(_options_of(one.annotation)) for one in parameters if _is_group(one.annotation)}

    @wraps(command)
    def run(**options: Any) -> T:
        for one in parameters:
            if one.name in groups:
                options[one.name] = one.annotation(**{each.name: options.pop(each.name) for each in groups[one.name]})
        return command(**options)

    shown = [each for one in parameters for each in groups.get(one.name, [one])]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def _options_of(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for one in inspect.signature(group).parameters.values():
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name])

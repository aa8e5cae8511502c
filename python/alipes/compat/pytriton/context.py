"""The context of a bound function: the configurations of the models that it serves, found by the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from alipes.compat.pytriton.exceptions import PyTritonValidationError
from alipes.compat.pytriton.triton_model_config import TritonModelConfig

__all__ = ["ModelConfigDict", "TritonContext", "bind_context", "get_model_config", "get_triton_context"]

Function = Callable[..., Any]


class ModelConfigDict(MutableMapping[Function, TritonModelConfig]):
    """Configurations by inference function. A method `__call__` and its object are one key."""

    def __init__(self) -> None:
        """Begins empty."""
        self._data: dict[str, TritonModelConfig] = {}
        self._keys: list[Function] = []

    def __getitem__(self, infer_callable: Function) -> TritonModelConfig:
        """The configuration of a function."""
        return self._data[self._get_model_config_key(infer_callable)]

    def __setitem__(self, infer_callable: Function, item: TritonModelConfig) -> None:
        """Sets the configuration of a function."""
        self._keys.append(infer_callable)
        self._data[self._get_model_config_key(infer_callable)] = item

    def __delitem__(self, infer_callable: Function) -> None:
        """Forgets the configuration of a function."""
        del self._data[self._get_model_config_key(infer_callable)]

    def __len__(self) -> int:
        """Number of functions."""
        return len(self._data)

    def __iter__(self) -> Iterator[Function]:
        """The functions."""
        return iter(self._keys)

    @staticmethod
    def _get_model_config_key(infer_callable: Function) -> str:
        """A decorator hands on what it decorates, whose text is that of the decorated thing."""
        if inspect.ismethod(infer_callable) and infer_callable.__name__ == "__call__":
            return str(infer_callable.__self__)
        return str(infer_callable)


@dataclass
class TritonContext:
    """What a bound function may know of its server."""

    model_configs: ModelConfigDict = field(default_factory=ModelConfigDict)


def get_triton_context(wrapped: Any, instance: Any) -> TritonContext:
    """The context of a function, or of the object that it is a method of.

    Raises:
        PyTritonValidationError: If it is not bound.
    """
    bound = instance or wrapped
    if not hasattr(bound, "__triton_context__"):
        raise PyTritonValidationError("Wrapped function or object must bound with triton to get  __triton_context__")
    context: TritonContext = bound.__triton_context__
    return context


def get_model_config(wrapped: Any, instance: Any) -> TritonModelConfig:
    """The configuration of the model that a function serves; for decorators of one's own.

    Raises:
        PyTritonValidationError: If it is not bound.
    """
    return get_triton_context(wrapped, instance).model_configs[wrapped]


def bind_context(context: TritonContext, function: Any) -> None:
    """Give a function its context, where decorators look for it: at its object if it is a method."""
    getattr(function, "__self__", function).__triton_context__ = context

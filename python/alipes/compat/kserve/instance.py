"""A model of the SDK as an instance of a model of the server."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any, Final

from alipes._core import InferenceRequest, InferenceResponse
from alipes.compat.kserve.client_factory import is_predictor_ready
from alipes.compat.kserve.context import get_predictor_config
from alipes.compat.kserve.errors import ModelNotReady
from alipes.compat.kserve.exchange import Exchange, collected
from alipes.compat.kserve.model import BaseKServeModel, InferenceModel, Model

__all__ = ["ModelInstance", "ProbedInstance", "is_plain"]

_PROBE_S: Final = 60.0
"""Longest wait for a model's own `healthy`."""


def is_plain(model: BaseKServeModel) -> bool:
    """Whether no handler of a model ever waits on an event loop: they are plain functions, or those of the SDK."""
    kind = type(model)
    if (
        not isinstance(model, Model)
        or kind.__call__ is not Model.__call__
        or kind.healthy is not BaseKServeModel.healthy
    ):
        return False
    if not _is_own(model, "explain") and model.explainer_host is not None:
        return False
    own = (getattr(kind, name) for name in ("preprocess", "postprocess", "explain") if _is_own(model, name))
    return not any(inspect.iscoroutinefunction(one) for one in own) and not inspect.iscoroutinefunction(model.predict)


def _is_own(model: Model, name: str) -> bool:
    return getattr(type(model), name) is not getattr(Model, name)


class ModelInstance:
    """Answers one request after the other; a model has as many instances as requests that it answers at once."""

    def __init__(self, model: BaseKServeModel, name: str, loop: asyncio.AbstractEventLoop) -> None:
        """Takes a model.

        Args:
            model: The model.
            name: The name under which it is served.
            loop: The event loop of its coroutines, which runs on another thread.
        """
        self._model, self._name, self._loop = model, name, loop
        self._is_plain = is_plain(model)

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """The answers to requests."""
        return [self._answer(Exchange.of(request, self._name)) for request in requests]

    def _answer(self, exchange: Exchange) -> InferenceResponse:
        if exchange.verb is None:
            return exchange.unknown()
        try:
            answering = self._ask(exchange)
            if self._is_plain:
                return exchange.answer(*_driven(answering))
            return exchange.answer(*asyncio.run_coroutine_threadsafe(answering, self._loop).result())
        except Exception as error:
            return exchange.refused(error)

    async def _ask(self, exchange: Exchange) -> tuple[Any, dict[str, str]]:
        """What the model returns, and its headers."""
        model = self._model
        if not await model.healthy():
            raise ModelNotReady(self._name)
        if not isinstance(model, InferenceModel):
            raise ValueError(f"Model of type {type(model).__name__} does not support inference")
        assert exchange.verb is not None
        payload = exchange.payload()
        returned = await model(payload, headers=exchange.headers, verb=exchange.verb)
        result, headers = returned if isinstance(returned, tuple) else (returned, {})
        return await collected(result), headers


class ProbedInstance(ModelInstance):
    """The instance that answers for a model whether it is ready: one of them is asked."""

    def is_ready(self) -> bool:
        """Whether the model says that it can answer, or its predictor where that is what counts."""
        config = get_predictor_config()
        has_predictor = config is not None and config.predictor_health_check and bool(config.predictor_host)
        if not has_predictor and type(self._model).healthy is BaseKServeModel.healthy:
            return bool(self._model.ready)
        asking = is_predictor_ready(config, self._name) if config and has_predictor else self._model.healthy()
        return bool(asyncio.run_coroutine_threadsafe(asking, self._loop).result(_PROBE_S))


def _driven(answering: Coroutine[Any, Any, tuple[Any, dict[str, str]]]) -> tuple[Any, dict[str, str]]:
    """What a coroutine returns that never waits: on this thread, without a loop."""
    try:
        answering.send(None)
    except StopIteration as ended:
        returned: tuple[Any, dict[str, str]] = ended.value
        return returned
    finally:
        answering.close()
    raise RuntimeError("a plain handler returned something that has to be awaited")

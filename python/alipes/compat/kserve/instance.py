"""A model of the SDK as an instance of a model of the server: how its handlers run, and on which thread."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Final, TypeVar

from alipes._core import InferenceRequest, InferenceResponse
from alipes.compat.kserve.client_factory import is_predictor_ready
from alipes.compat.kserve.context import get_predictor_config
from alipes.compat.kserve.errors import ModelNotReady
from alipes.compat.kserve.exchange import Exchange, collected, refused_tensors
from alipes.compat.kserve.joined import Joined, groups_of
from alipes.compat.kserve.model import BaseKServeModel, InferenceModel, Model

__all__ = ["ModelHandlers", "ProbedInstance", "ThreadInstance", "gives_pieces", "is_plain"]

_T = TypeVar("_T")

_PROBE_S: Final = 60.0
"""Longest wait for a model's own `healthy`."""

_PIECES: Final = re.compile(r"\bAsync(Iterator|Iterable|Generator)\b")


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


def gives_pieces(model: BaseKServeModel) -> bool:
    """Whether a model may answer with an iterator of pieces: its handlers yield them, or are annotated so."""
    names = ("predict", "postprocess") if type(model).__call__ is Model.__call__ else ("__call__",)
    return any(_yields(getattr(type(model), name, None)) for name in names)


def _yields(handler: Any) -> bool:
    annotation = getattr(handler, "__annotations__", {}).get("return", "")
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return inspect.isasyncgenfunction(handler) or _PIECES.search(text) is not None


def _is_own(model: Model, name: str) -> bool:
    return getattr(type(model), name) is not getattr(Model, name)


class ModelHandlers:
    """The handlers of a model, by the name under which it is served."""

    def __init__(self, model: BaseKServeModel, name: str) -> None:
        """Takes the model and the name."""
        self.model, self.name = model, name

    async def run(self, exchange: Exchange, payload: Any, headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
        """What the model returns for a request, and its headers.

        Args:
            exchange: The request, or one of those that are one for the model.
            payload: What the model gets.
            headers: Headers of the request.
        """
        model = self.model
        ready = model.ready if type(model).healthy is BaseKServeModel.healthy else await model.healthy()
        if not ready:
            raise ModelNotReady(self.name)
        if not isinstance(model, InferenceModel):
            raise ValueError(f"Model of type {type(model).__name__} does not support inference")
        assert exchange.verb is not None
        returned = await model(payload, headers=headers, verb=exchange.verb)
        return returned if isinstance(returned, tuple) else (returned, {})

    async def respond(self, exchange: Exchange) -> InferenceResponse:
        """The response to a request, whatever comes of it."""
        if exchange.verb is None:
            return exchange.unknown()
        try:
            result, headers = await self.run(exchange, exchange.payload(), exchange.headers)
            if isinstance(result, AsyncIterator):
                result = await collected(result)
            return exchange.answer(result, headers)
        except Exception as error:
            return exchange.refused(error)

    async def respond_together(self, exchanges: Sequence[Exchange]) -> list[InferenceResponse]:
        """The responses to requests, of which those that fit are one for the model.

        Where the model fails for several, each is run by itself: one that is bad is no other's fault.
        """
        responses: dict[Exchange, InferenceResponse] = {}
        for group in groups_of(exchanges):
            found = await self._together(group) if isinstance(group, Joined) else None
            for at, one in enumerate(group.exchanges if isinstance(group, Joined) else (group,)):
                responses[one] = found[at] if found is not None else await self.respond(one)
        return [responses[one] for one in exchanges]

    async def _together(self, joined: Joined) -> list[InferenceResponse] | None:
        try:
            result, headers = await self.run(joined.exchanges[0], joined.payload, joined.headers)
            return [
                one.answer(part, dict(headers))
                for one, part in zip(joined.exchanges, joined.parts(result), strict=True)
            ]
        except Exception:
            return None


class ThreadInstance:
    """Answers one request after the other on its thread; a model has as many as requests that it answers at once."""

    def __init__(self, handlers: ModelHandlers, together: bool = False) -> None:
        """Takes a model whose handlers are plain, and whether requests that come together are one for it."""
        self._handlers, self._together = handlers, together

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """The responses to requests."""
        name = self._handlers.name
        exchanges = [Exchange.of(request, name) for request in requests]
        if self._together and len(exchanges) > 1 and all(exchanges):
            return _driven(self._handlers.respond_together([one for one in exchanges if one]))
        return [_driven(self._handlers.respond(one)) if one else refused_tensors(name) for one in exchanges]


class ProbedInstance:
    """An instance that answers for a model whether it is ready: one of them does."""

    def __init__(self, instance: Any, handlers: ModelHandlers, loop: asyncio.AbstractEventLoop) -> None:
        """Takes the instance, its model, and the event loop of the model's coroutines, which runs on another thread."""
        self.execute = instance.execute
        self._model, self._name, self._loop = handlers.model, handlers.name, loop

    def is_ready(self) -> bool:
        """Whether the model says that it can answer, or its predictor where that is what counts."""
        config = get_predictor_config()
        has_predictor = config is not None and config.predictor_health_check and bool(config.predictor_host)
        if not has_predictor and type(self._model).healthy is BaseKServeModel.healthy:
            return bool(self._model.ready)
        asking = is_predictor_ready(config, self._name) if config and has_predictor else self._model.healthy()
        return bool(asyncio.run_coroutine_threadsafe(asking, self._loop).result(_PROBE_S))


def _driven(answering: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine returns that never waits: on this thread, without a loop."""
    try:
        answering.send(None)
    except StopIteration as ended:
        returned: _T = ended.value
        return returned
    finally:
        answering.close()
    raise RuntimeError("a plain handler returned something that has to be awaited")

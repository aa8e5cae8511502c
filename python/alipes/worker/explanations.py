"""Requests of V1 that are calls; and the method `explain` of a Python model, which answers those for explanations.

They come as calls to models whose parameter `endpoint` says `"explain": true`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse
    from alipes.worker.setup import Setup

__all__ = ["EXPLAIN", "is_for_explanation", "is_for_prediction", "merged", "with_explanations"]

EXPLAIN: Final = "explain"
"""The method."""

_VERB: Final = ":explain"
_PREDICT: Final = ":predict"
_PATH: Final = "alipes.path"
_BAD_REQUEST: Final = 400


def is_for_prediction(request: InferenceRequest) -> bool:
    """Whether a request of V1 asks for a prediction."""
    return _has_verb(request, _PREDICT)


def is_for_explanation(request: InferenceRequest) -> bool:
    """Whether a request asks for an explanation."""
    return _has_verb(request, _VERB)


def _has_verb(request: InferenceRequest, verb: str) -> bool:
    parameters = request.parameters() or ""
    # Most parameters are not read: the path is among those of few requests.
    return verb in parameters and str(json.loads(parameters).get(_PATH, "")).endswith(verb)


def merged(
    wanted: Sequence[bool], explanations: Iterable[Any], others: Sequence[InferenceResponse | None] | None
) -> list[InferenceResponse | None]:
    """The responses to explanations, and those to other requests, in the order of the requests.

    Args:
        wanted: Of each request, whether it asks for an explanation.
        explanations: The responses to those that do.
        others: The responses to those that do not; left out where they come later.
    """
    found, rest = iter(explanations), iter(others or [None for is_wanted in wanted if not is_wanted])
    return [next(found) if is_wanted else next(rest) for is_wanted in wanted]


def with_explanations(model: Any, setup: Setup) -> Any:
    """A Python model whose method `explain` is asked for explanations; any other model as it is."""
    if not (setup.endpoint and callable(getattr(model, EXPLAIN, None))) or setup.decoupled:
        return model
    parameter = json.loads(setup.model_config)["parameters"]["endpoint"]["string_value"]
    return _Explained(model) if json.loads(parameter).get(EXPLAIN) is True else model


class _Explained:
    """A model that is asked for explanations by its method, and for all else as before."""

    def __init__(self, model: Any) -> None:
        from alipes.worker.apps.asks import answered, call_failed

        self._model = model
        self._answered: Callable[..., InferenceResponse] = answered
        self._failed: Callable[..., InferenceResponse] = call_failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def execute(self, requests: list[InferenceRequest]) -> Any:
        """The responses to requests, or a coroutine for them where the model has one."""
        wanted = [is_for_explanation(request) for request in requests]
        if not any(wanted):
            return self._model.execute(requests)
        rest = [request for request, is_wanted in zip(requests, wanted, strict=True) if not is_wanted]
        others = self._model.execute(rest) if rest else []
        explanations = [
            self._explanation(request) for request, is_wanted in zip(requests, wanted, strict=True) if is_wanted
        ]
        if any(isinstance(one, Coroutine) for one in (others, *explanations)):
            return self._awaited(wanted, explanations, others)
        return merged(wanted, explanations, others)

    async def _awaited(self, wanted: list[bool], explanations: list[Any], others: Any) -> Any:
        found = [await one if isinstance(one, Coroutine) else one for one in explanations]
        return merged(wanted, found, await others if isinstance(others, Coroutine) else others)

    def _explanation(self, request: InferenceRequest) -> Any:
        """The response to one request, or a coroutine for it."""
        from alipes._core import call_response, read_call

        call = read_call(request)
        assert call is not None, "requests for explanations are calls"
        try:
            payload = json.loads(call[0])
        except ValueError as error:
            return call_response(_encode({"error": f"the body is no JSON: {error}"}), _BAD_REQUEST)
        try:
            value = self._model.explain(payload)
        except Exception as error:
            return self._failed(error, _encode)
        return self._later(value) if inspect.isawaitable(value) else self._answered(value, _encode)

    async def _later(self, value: Any) -> InferenceResponse:
        try:
            return self._answered(await value, _encode)
        except Exception as error:
            return self._failed(error, _encode)


def _encode(value: Any) -> bytes:
    """A value as JSON; arrays become lists."""
    return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of JSON: let explain return lists, dictionaries and numbers")

"""The method `explain` of a class: it answers requests of V1 for explanations, beside the method that predicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import ConfigError
from alipes.worker.apps.asks import Ask, ask_of, failed
from alipes.worker.apps.misfit import MALFORMED, UNFIT, Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import Plan, has_method, plan_of

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse
    from alipes.worker.apps.asks import Bodies

__all__ = ["EXPLAIN", "Explainer", "explanation_options", "explanation_plan"]

EXPLAIN: Final = "explain"
"""The method."""

_VERB: Final = ":explain"
_PATH: Final = "alipes.path"

_Execute = Callable[[list["InferenceRequest"]], "list[InferenceResponse | None] | None"]


def explanation_options(options: Options) -> Options:
    """The options of the method, which takes one request at a time, and is named behind its model."""
    return Options(f"{options.name}.{EXPLAIN}")


def explanation_plan(served: Any, options: Options, plan: Plan) -> Plan | None:
    """What the method takes and gives; None for what is no class, has no such method, or answers with streams.

    Args:
        served: What is decorated.
        options: Those of the method.
        plan: What the method that predicts takes and gives.

    Raises:
        ConfigError: If it cannot be served.
    """
    if not isinstance(served, type) or plan.is_stream or not has_method(served, EXPLAIN):
        return None
    found = plan_of(served, options, (EXPLAIN,))
    if found.is_stream:
        raise ConfigError(f"model '{options.name}': an explanation is one value; let the method return it")
    return found


class Explainer:
    """Has a method answer the requests for explanations among those of a model."""

    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies) -> None:
        """Takes the method, which returns its value when it is called, and what it takes and gives."""
        self._function = function
        # An explanation is asked for by a document, whatever else its arguments could be.
        self._plan = replace(plan, is_async=False)
        self._bodies = bodies

    def execute(self, requests: list[InferenceRequest], others: _Execute) -> list[InferenceResponse | None] | None:
        """The responses to requests.

        Args:
            requests: The requests.
            others: Answers those that ask for no explanation.
        """
        wanted = [_is_for_explanation(request) for request in requests]
        if not any(wanted):
            return others(requests)
        rest = [request for request, is_wanted in zip(requests, wanted, strict=True) if not is_wanted]
        found = iter((others(rest) if rest else None) or [None for _ in rest])
        return [
            self._answer(ask_of(request, self._plan, self._bodies)) if is_wanted else next(found)
            for request, is_wanted in zip(requests, wanted, strict=True)
        ]

    def _answer(self, ask: Ask) -> InferenceResponse:
        try:
            try:
                ask.read()
            except Misfit as error:
                # V1 has one status for all that is wrong with a body.
                raise Misfit(str(error), status=MALFORMED) if error.status == UNFIT else error from error
            return ask.response(self._function(**ask.arguments))
        except Exception as error:
            return failed(error, ask.failure)


def _is_for_explanation(request: InferenceRequest) -> bool:
    parameters = request.parameters() or ""
    # Most parameters are not read: the path is among those of few requests.
    return _VERB in parameters and str(json.loads(parameters).get(_PATH, "")).endswith(_VERB)

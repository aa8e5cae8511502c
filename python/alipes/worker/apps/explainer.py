"""What answers requests of V1 for explanations, beside a function or a method that predicts.

It is the function that `explain=` names, or else the method `explain` of a class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from alipes.errors import ConfigError
from alipes.worker.apps.asks import Ask, ask_of, failed
from alipes.worker.apps.callers import answering
from alipes.worker.apps.misfit import MALFORMED, UNFIT, Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import Plan, has_method, plan_of
from alipes.worker.explanations import EXPLAIN, is_for_explanation, merged

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse
    from alipes.worker.apps.asks import Bodies

__all__ = ["Begins", "Explainer", "explained_by", "explanation_options", "explanation_plan"]

_Execute = Callable[[list["InferenceRequest"]], "list[InferenceResponse | None] | None"]


class Begins(Protocol):
    """What works on requests side by side."""

    def begin(self, request: InferenceRequest, ask: Ask, function: Callable[..., Any]) -> None:
        """Has a coroutine answer a request later."""


def explanation_options(options: Options) -> Options:
    """The options of what explains, which takes one request at a time, and is named behind its model."""
    return Options(f"{options.name}.{EXPLAIN}")


def explained_by(served: Any, options: Options) -> Callable[..., Any] | None:
    """What explains the answers of a decorated function or class: a function, or a method that has no object yet."""
    if options.explain is not None:
        return options.explain
    if isinstance(served, type) and has_method(served, EXPLAIN):
        method: Callable[..., Any] = getattr(served, EXPLAIN)
        return method
    return None


def explanation_plan(served: Any, options: Options, plan: Plan) -> Plan | None:
    """What that takes and gives; None for a model without it, or whose answer is a stream.

    Args:
        served: What is decorated.
        options: Those of the model.
        plan: What the model takes and gives.

    Raises:
        ConfigError: If it cannot be served.
    """
    if explained_by(served, options) is None:
        return None
    if plan.is_stream:
        if options.explain is None:
            return None
        raise ConfigError(
            f"model '{options.name}': its answer is a stream, which explain= cannot explain: leave it out"
        )
    own = explanation_options(options)
    found = plan_of(served, own, (EXPLAIN,)) if options.explain is None else plan_of(options.explain, own)
    if found.is_stream:
        raise ConfigError(f"model '{own.name}': an explanation is one value; let {_called(options)} return it")
    return found


def _called(options: Options) -> str:
    return "the method" if options.explain is None else "the function"


class Explainer:
    """Has a function or a method answer the requests for explanations among those of a model."""

    def __init__(self, function: Callable[..., Any], plan: Plan, bodies: Bodies, begins: Begins | None) -> None:
        """Takes what explains.

        Args:
            function: It, which returns its value when it is called, or a coroutine where there is somebody to begin it.
            plan: What it takes and gives.
            bodies: Reads its documents.
            begins: Begins its coroutines beside those of the model; None where each explanation is made by itself.
        """
        self._function = function
        # An explanation is asked for by a document, whatever else its arguments could be.
        self._plan = replace(plan, is_async=False)
        self._bodies = bodies
        self._begins = begins

    def execute(self, requests: list[InferenceRequest], others: _Execute) -> list[InferenceResponse | None] | None:
        """The responses to requests, None for those that are answered later.

        Args:
            requests: The requests.
            others: Answers those that ask for no explanation.
        """
        wanted = [is_for_explanation(request) for request in requests]
        if not any(wanted):
            return others(requests)
        rest = [request for request, is_wanted in zip(requests, wanted, strict=True) if not is_wanted]
        found = others(rest) if rest else []
        explained = [self._answer(request) for request, is_wanted in zip(requests, wanted, strict=True) if is_wanted]
        return merged(wanted, explained, found)

    def _answer(self, request: InferenceRequest) -> InferenceResponse | None:
        ask = _OfV1(ask_of(request, self._plan, self._bodies))
        if self._begins is not None:
            self._begins.begin(request, ask, self._function)
            return None
        try:
            ask.read()
            with answering((request,)):
                value = self._function(**ask.arguments)
            return ask.response(value)
        except Exception as error:
            return failed(error, ask.failure)


class _OfV1(Ask):
    """What a request of V1 asks: the protocol has one status for all that is wrong with a body."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If the body does not fit.
        """
        try:
            self._ask.read()
        except Misfit as error:
            raise Misfit(str(error), status=MALFORMED) if error.status == UNFIT else error from error
        self.arguments = self._ask.arguments

    def response(self, value: Any) -> InferenceResponse:
        """The response that carries a value."""
        return self._ask.response(value)

    def failure(self, error: BaseException) -> InferenceResponse:
        """The response that carries an error."""
        return self._ask.failure(error)

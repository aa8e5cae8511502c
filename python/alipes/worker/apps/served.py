"""A decorated function or class at work: made, set up, asked and closed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from alipes.errors import ConfigError
from alipes.worker.apps.explainer import Explainer, explanation_options, explanation_plan
from alipes.worker.apps.plan import METHODS, Plan, plan_of
from alipes.worker.apps.runners import Coroutines, Runner, runner_of
from alipes.worker.apps.steps import Step
from alipes.worker.apps.unread import Unread
from alipes.worker.explanations import EXPLAIN

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse
    from alipes.worker.apps.asks import Bodies

__all__ = ["ServedFunction"]


class ServedFunction:
    """Answers requests with a function or class."""

    def __init__(
        self, step: Step, device: str, plan: Plan | None = None, function: Callable[..., Any] | None = None
    ) -> None:
        """Makes the class where it is one, and calls what is to be called at the start.

        Args:
            step: The function or class.
            device: Where it is to run: `cpu`, or `cuda:0`.
            plan: What it takes and gives; where left out, its annotations say it.
            function: What is called with tensors in the place of it; documents may then be left unread.

        Raises:
            Exception: Whatever the function raises.
        """
        served, self._options = step.served, step.options
        if self._options.start is not None:
            self._options.start()
        self._object = _made(served, device) if isinstance(served, type) else None
        plan = plan or plan_of(served, self._options)
        bodies = _bodies(plan, self._options.name, needed=function is None)
        called = function or (_method(self._object) if isinstance(served, type) else served)
        self._runner: Runner = runner_of(called, plan, bodies, self._options.concurrency)
        self._explainer = self._made_explainer(served, plan)
        self._call("setup", device)

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """Answers requests, some of them later."""
        if self._explainer is None:
            return self._runner.execute(requests)
        return self._explainer.execute(requests, self._runner.execute)

    def finalize(self) -> None:
        """Ends what still runs, and calls what is to be called at the end."""
        self._call("close")
        self._runner.close()
        if self._options.stop is not None:
            self._options.stop()

    def on_threads(self, prepare: Callable[[], None]) -> None:
        """Has the thread of coroutines, where there is one, do something before anything else."""
        run: Callable[[Any], Any] | None = getattr(self._runner, "run", None)

        async def prepared() -> None:
            prepare()

        if run is not None:
            run(prepared())

    def _made_explainer(self, served: Any, plan: Plan) -> Explainer | None:
        found = explanation_plan(served, self._options, plan)
        if found is None:
            return None
        function: Callable[..., Any] = self._options.explain or getattr(self._object, EXPLAIN)
        bodies = _bodies(found, explanation_options(self._options).name, needed=True)
        if found.is_async and isinstance(self._runner, Coroutines):
            return Explainer(function, found, bodies, self._runner)
        awaited = (lambda **arguments: self._run(function(**arguments))) if found.is_async else function
        return Explainer(awaited, found, bodies, None)

    def _call(self, name: str, *arguments: str) -> None:
        """Calls a method of the class, if it has one, with as many of the arguments as it takes."""
        method = getattr(self._object, name, None)
        if not callable(method):
            return
        result = method(*arguments[: len(inspect.signature(method).parameters)])
        if inspect.iscoroutine(result):
            self._run(result)

    def _run(self, coroutine: Any) -> Any:
        """What a coroutine returns: on the loop of the others, where there are some."""
        run: Callable[[Any], Any] | None = getattr(self._runner, "run", None)
        if run is None:
            import asyncio

            run = asyncio.run
        return run(coroutine)


def _bodies(plan: Plan, name: str, *, needed: bool) -> Bodies:
    """What reads documents.

    Args:
        plan: What the function takes and gives.
        name: The model's name.
        needed: Whether the model cannot be served without; else, where msgspec is missing, tensors alone are answered.
    """
    try:
        from alipes.worker.apps.bodies import Bodies
        from alipes.worker.apps.documents import Documents
    except ConfigError as error:
        if needed:
            raise
        return Unread(str(error))
    return Bodies(plan, Documents(plan, name))


def _made(served: type[Any], device: str) -> Any:
    """The object of a class, which is given its device where its `__init__` asks for one."""
    asks = "__init__" in vars(served) and "device" in inspect.signature(served).parameters
    return served(device=device) if asks else served()


def _method(thing: Any) -> Callable[..., Any]:
    """The method of an object that answers."""
    for name in METHODS:
        if callable(getattr(type(thing), name, None)):
            found: Callable[..., Any] = getattr(thing, name)
            return found
    raise TypeError(f"{type(thing).__name__} has no method {' or '.join(METHODS)}")

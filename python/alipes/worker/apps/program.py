"""The model that a worker runs for a decorated function or class; the `model.py` of an app's folder imports it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.errors import ConfigError
from alipes.worker.apps.arrays import named_outputs, plan_of_arrays
from alipes.worker.apps.explainer import EXPLAIN, Explainer, explanation_options, explanation_plan
from alipes.worker.apps.forwarded import set_secret
from alipes.worker.apps.options import Options, options_of
from alipes.worker.apps.peers import KNOWN
from alipes.worker.apps.plan import METHODS, Plan, plan_of
from alipes.worker.apps.runners import Runner, runner_of
from alipes.worker.apps.source import FILE, Source, declared
from alipes.worker.apps.steps import Step
from alipes.worker.apps.unread import Unread
from alipes.worker.triton.logger import Logger

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse
    from alipes.worker.apps.asks import Bodies

__all__ = ["TritonPythonModel"]


class TritonPythonModel:
    """Answers requests with a function of an app."""

    def initialize(self, args: dict[str, str]) -> None:
        """Imports the app, makes the class where it is one, and calls what is to be called at the start.

        Raises:
            Exception: Whatever the app raises.
        """
        folder = Path(args["model_repository"]) / args["model_version"]
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
        set_secret(document.get("secret", ""))
        config = json.loads(args["model_config"])
        step = _step(document, folder, args["model_name"], int(config.get("max_batch_size", 0)))
        served, self._options = step.served, step.options
        device = f"cuda:{args['model_instance_device_id']}" if args["model_instance_kind"] == "GPU" else "cpu"
        if self._options.start is not None:
            self._options.start()
        self._object = _made(served, device) if isinstance(served, type) else None
        function = _method(self._object) if isinstance(served, type) else served
        if "inputs" in document:
            plan = plan_of_arrays(served, config, document["inputs"], document["why_alone"])
            if plan.batched and plan.why_alone:
                Logger.log_warn(f"function '{served.__name__}' is called once a request: {plan.why_alone}")
            function = named_outputs(served, list(plan.outputs or ()))
        else:
            plan = plan_of(served, self._options)
        bodies = _bodies(plan, self._options.name, needed="inputs" not in document)
        self._runner: Runner = runner_of(function, plan, bodies, self._options.concurrency)
        self._explainer = self._made_explainer(served, plan)
        self._call("setup", device)

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """Answers requests, some of them later."""
        if self._explainer is None:
            return self._runner.execute(requests)
        return self._explainer.execute(requests, self._runner.execute)

    def _made_explainer(self, served: Any, plan: Plan) -> Explainer | None:
        options = explanation_options(self._options)
        found = explanation_plan(served, options, plan)
        if found is None:
            return None
        method: Callable[..., Any] = getattr(self._object, EXPLAIN)
        function = (lambda **arguments: self._run(method(**arguments))) if found.is_async else method
        return Explainer(function, found, _bodies(found, options.name, needed=True))

    def finalize(self) -> None:
        """Ends what still runs, and calls what is to be called at the end."""
        self._call("close")
        self._runner.close()
        if self._options.stop is not None:
            self._options.stop()

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


def _step(document: Mapping[str, Any], folder: Path, name: str, rows: int) -> Step:
    """The function or class that a version runs.

    Args:
        document: What the version says of it.
        folder: The version's folder.
        name: The model's name.
        rows: What the configuration has as `max_batch_size`.

    Raises:
        ConfigError: If the source has none of that name.
    """
    module = Source.of(document).load(folder)
    if "function" in document:  # it was exported
        served = getattr(module, document["function"])
        return Step(served, options_of(served) or Options(name, max_batch_size=rows))
    steps = declared(module)
    KNOWN.update({name: (step.served, step.options) for name, step in steps.items()})
    if document["name"] not in steps:
        raise ConfigError(f"the app has no model '{document['name']}'; it has {', '.join(sorted(steps))}")
    return steps[document["name"]]


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

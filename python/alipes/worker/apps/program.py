"""The model that a worker runs for a decorated function or class; the `model.py` of an app's folder imports it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.errors import ConfigError
from alipes.worker.apps.arrays import named_outputs, plan_of_arrays
from alipes.worker.apps.forwarded import set_secret
from alipes.worker.apps.options import Options, options_of
from alipes.worker.apps.peers import KNOWN
from alipes.worker.apps.predictor_flags import predictor_flags, predictors_are_ready, set_predictor_flags
from alipes.worker.apps.served import ServedFunction
from alipes.worker.apps.source import FILE, Source, declared
from alipes.worker.apps.steps import Step
from alipes.worker.triton.logger import Logger

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse

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
        set_predictor_flags(document.get("predictor", {}))
        if predictor_flags().health_check:  # a model without `is_ready` is not asked
            self.is_ready = predictors_are_ready
        config = json.loads(args["model_config"])
        step = _step(document, folder, args["model_name"], int(config.get("max_batch_size", 0)))
        device = f"cuda:{args['model_instance_device_id']}" if args["model_instance_kind"] == "GPU" else "cpu"
        if "inputs" not in document:
            self._served = ServedFunction(step, device)
            return
        served = step.served
        plan = plan_of_arrays(served, config, document["inputs"], document["why_alone"])
        if plan.batched and plan.why_alone:
            Logger.log_warn(f"function '{served.__name__}' is called once a request: {plan.why_alone}")
        self._served = ServedFunction(step, device, plan, named_outputs(served, list(plan.outputs or ())))

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse | None] | None:
        """Answers requests, some of them later."""
        return self._served.execute(requests)

    def finalize(self) -> None:
        """Ends what still runs, and calls what is to be called at the end."""
        self._served.finalize()


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
    steps = declared(module, served_as=document.get("served_as", ""))
    KNOWN.update({name: (step.served, step.options) for name, step in steps.items()})
    if document["name"] not in steps:
        raise ConfigError(f"the app has no model '{document['name']}'; it has {', '.join(sorted(steps))}")
    return steps[document["name"]]

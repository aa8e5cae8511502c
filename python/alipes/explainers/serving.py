"""An explainer as a model of an app: `:explain` of V1, and tensors over V2."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from alipes.explainers.explainer import Explainer
from alipes.worker.apps.decorator import model

__all__ = ["explainer_model"]


def explainer_model(explainer: Explainer, name: str, instances: int) -> Callable[..., Any]:
    """The function that an app serves.

    Args:
        explainer: What explains.
        name: The model's name.
        instances: Processes that run it.

    Raises:
        ConfigError: If an option cannot be.
    """
    input_name, annotation, outputs = explainer.tensors()
    result = dataclasses.make_dataclass("Explanations", list(outputs.items()))

    def explained(**arguments: Any) -> Any:
        return result(**explainer.outputs(explainer.explain(arguments[input_name])))

    def why(instances: list[Any]) -> dict[str, Any]:
        found = explainer.explain([explainer.instance(one) for one in instances])
        return {"explanations": [one.document() for one in found]}

    text = f"Explains the outputs of the predictor: by {type(explainer).__name__}."
    described(explained, name, {input_name: annotation}, result, text)
    described(why, f"{name}.explain", {"instances": list[Any]}, dict[str, Any], text)
    mark = model(name=name, instances=instances, explain=why, start=partial(explainer.prepare))
    return mark(explained)


def described(function: Callable[..., Any], name: str, arguments: dict[str, Any], result: Any, text: str) -> None:
    """Has a function say of itself what its annotations would."""
    import inspect

    parameters = [
        inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
        for one, annotation in arguments.items()
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {**arguments, "return": result}
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text

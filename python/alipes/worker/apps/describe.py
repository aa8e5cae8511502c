"""What the control plane asks of an app before it serves it, in a process of its own.

The question is the JSON of a `Source`, with the name of the one model that is wanted, or an empty one. The answer is a
JSON object: `models`, or `error` with what to do, and the app's `files`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from alipes.errors import AlipesError
from alipes.worker.apps.call_signature import call_signature
from alipes.worker.apps.documents import Documents
from alipes.worker.apps.explainer import explained_by, explanation_options, explanation_plan
from alipes.worker.apps.plan import DOCUMENT, Plan, plan_of
from alipes.worker.apps.schema import schema_of
from alipes.worker.apps.source import Source, declared
from alipes.worker.apps.steps import Step

__all__ = ["describe", "describe_into", "described"]

_PACKAGE: Final = f"{Path(__file__).parents[2]}/"
"""Our own files, in which no user has to look."""
_DOCUMENT: Final = {"name": DOCUMENT, "datatype": "BYTES", "dims": [1]}


def describe_into(question: str, result: int) -> None:
    """Describes an app into a file.

    Args:
        question: Where the app stands.
        result: Descriptor of the file to write; it is closed.
    """
    document = json.loads(question)
    try:
        found: dict[str, Any] = {
            "models": describe(Source.of(document), document.get("name", ""), document.get("served_as", ""))
        }
    except AlipesError as error:
        found = {"error": str(error)}
    except BaseException as error:
        found = {"error": _reason(error, document)}
    found["files"] = _own_files(document)
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


def describe(source: Source, name: str = "", served_as: str = "") -> list[dict[str, Any]]:
    """The models of an app.

    Args:
        source: The app.
        name: The one that is wanted, by its own name or by that of the function; all where empty.
        served_as: Another name for the only model that is wanted; its own where empty.

    Raises:
        ConfigError: If there is none, or one cannot be served.
        BaseException: Whatever the source raises.
    """
    return [described(step) for step in declared(source.load(), name, served_as).values()]


def described(step: Step, plan: Plan | None = None) -> dict[str, Any]:
    """What the control plane has to know of one model.

    Args:
        step: The model.
        plan: What it takes and gives; where left out, its annotations say it.

    Raises:
        ConfigError: If it cannot be served.
    """
    served, options = step.served, step.options
    plan = plan or plan_of(served, options)
    documents = Documents(plan, options.name)
    return {
        "name": options.name,
        "max_batch_size": options.max_batch_size,
        "max_delay_s": options.max_delay_s,
        "timeout_s": options.timeout_s,
        "instances": options.instances,
        "device": options.device,
        "concurrency": options.concurrency if plan.is_async or plan.is_stream else 0,
        "is_stream": plan.is_stream,
        "has_endpoint": step.has_endpoint,
        "looks_at_head": bool(plan.request),
        "inputs": _inputs(plan),
        "outputs": _outputs(plan),
        "schema": schema_of(served, plan, documents, options),
        "signature": call_signature(served, plan),
        "explanation": _explanation(step, plan),
    }


def _explanation(step: Step, plan: Plan) -> dict[str, Any] | None:
    """What the API page says of what explains; None where there is none, or no request can reach it."""
    explanation = explanation_plan(step.served, step.options, plan) if step.has_endpoint else None
    if explanation is None:
        return None
    options = explanation_options(step.options)
    function = explained_by(step.served, step.options)
    return schema_of(function, explanation, Documents(explanation, options.name), options)


def _inputs(plan: Plan) -> list[dict[str, Any]]:
    if not plan.has_tensors:
        return [_DOCUMENT]
    return [
        {
            "name": one.input or one.name,
            "datatype": one.tensor.datatype,
            "dims": one.tensor.dims,
            "optional": not one.required,
        }
        for one in plan.arguments
        if one.tensor is not None
    ]


def _outputs(plan: Plan) -> list[dict[str, Any]]:
    if not plan.has_tensors or plan.outputs is None:
        return [_DOCUMENT]
    return [{"name": name, "datatype": one.datatype, "dims": one.dims} for name, one in plan.outputs.items()]


def _reason(error: BaseException, document: dict[str, Any]) -> str:
    """Why an app cannot be imported: kind, text, and the last place in it."""
    text = f"{type(error).__name__}: {error}".rstrip()
    place = ""
    if isinstance(error, SyntaxError) and error.filename:
        text, place = f"SyntaxError: {error.msg}", f" ({error.filename}, line {error.lineno})"
    elif frames := traceback.extract_tb(error.__traceback__):
        own = [frame for frame in frames if not frame.filename.startswith(("<", _PACKAGE))]
        place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    module = str(document.get("module", ""))
    absent = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
    if absent and module.startswith(absent):
        return f"there is no {module.replace('.', '/')}.py in this folder: name the file, as in alipes serve app.py"
    if absent and importlib.util.find_spec(absent.partition(".")[0]) is None:
        return f"{text}{place}: install the package that has it"
    return text + place


def _own_files(document: dict[str, Any]) -> list[str]:
    """The files of the app: what was imported from its folder, and its own file."""
    root = Path(document["file"]).parent if document.get("file") else Path(document.get("root", "."))
    files = {str(document["file"])} if document.get("file") else set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(root) and "site-packages" not in file:
            files.add(file)
    return sorted(files)

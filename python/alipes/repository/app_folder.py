"""Writes the models of an app into a repository: for each a folder with a configuration and a short `model.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alipes.config.call_endpoint import PARAMETER
from alipes.config.datatypes import config_number
from alipes.config.pbtxt import to_pbtxt
from alipes.config.schema import ModelConfig, new_config

__all__ = [
    "APP_FILE",
    "MODEL_FILE",
    "SIGNATURE",
    "app_config",
    "call_endpoint",
    "waiting_key",
    "write_model",
    "write_version",
]

SIGNATURE: Final = "signature"
"""The parameter by which clients know how a function is called: `client.call` reads it."""

_DOCUMENT: Final = "document"
"""The only input of a model that takes documents."""

APP_FILE: Final = "app.json"
"""File of a version that says which function of which source it runs; clients do not see it."""

MODEL_FILE: Final = '''"""Runs the function that app.json names. Written by alipes."""

from alipes.worker.apps.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
'''


def app_config(model: Mapping[str, Any]) -> ModelConfig:
    """The configuration of a model of an app.

    Args:
        model: What the app says of it.
    """
    config = new_config(name=model["name"], backend="python", max_batch_size=model["max_batch_size"])
    for side in ("input", "output"):
        for tensor in model[f"{side}s"]:
            one = getattr(config, side).add(name=tensor["name"], data_type=config_number(tensor["datatype"]))
            one.dims.extend(tensor["dims"])
            if tensor.get("optional"):
                one.optional = True
    gpu = model["device"] == "gpu"
    config.instance_group.add(count=model["instances"], kind="KIND_GPU" if gpu else "KIND_CPU")
    if model["max_batch_size"] > 0:
        config.dynamic_batching.max_queue_delay_microseconds = round(model["max_delay_s"] * 1e6)
    if model["is_stream"]:
        config.model_transaction_policy.decoupled = True
    if model["timeout_s"] is not None:
        config.parameters["EXECUTE_TIMEOUT_SECONDS"].string_value = f"{model['timeout_s']:g}"
    if model["has_endpoint"]:
        config.parameters[PARAMETER].string_value = call_endpoint(model)
        config.parameters[SIGNATURE].string_value = json.dumps(model["signature"])
    return config


def call_endpoint(model: Mapping[str, Any]) -> str:
    """The parameter by which `POST /<name>` reaches a model of an app, with headers and query if it looks at them.

    So do requests of V1 for explanations, where it has some; and those for predictions, where it takes documents.
    """
    endpoint = {"methods": ["POST"], "stream": bool(model["is_stream"]), "head": bool(model["looks_at_head"])}
    if model["explanation"] is not None:
        endpoint["explain"] = True
    if not model["is_stream"] and [one["name"] for one in model["inputs"]] == [_DOCUMENT]:
        endpoint["predict"] = True
    return json.dumps(endpoint)


def write_model(repository: Path, config: ModelConfig, app: Mapping[str, Any]) -> None:
    """Writes a model, or how it is now; the version is 1.

    Args:
        repository: The folder of the models.
        config: Its configuration.
        app: Where the app stands, for the worker: `file`, or `module` with `root`; what tells one `state` of the source
            from another; the `secret` by which its steps know each other; its `concurrency`.
    """
    folder = repository / config.name
    version = folder / "1"
    version.mkdir(parents=True, exist_ok=True)
    write_version(version, {**app, "name": config.name})
    half = folder / ".config.pbtxt"
    half.write_text(to_pbtxt(config), encoding="utf-8")
    half.rename(folder / "config.pbtxt")


def waiting_key(app: Mapping[str, Any]) -> str:
    """Under which key a process may wait that has an app imported; empty for an app that no process has described.

    Args:
        app: What a version says of it.
    """
    words = [str(app.get(name, "")) for name in ("secret", "state", "file", "module")]
    return ":".join(words) if words[0] else ""


def write_version(folder: Path, app: Mapping[str, Any]) -> None:
    """Writes the files of a version.

    Args:
        folder: The version's folder, which is there.
        app: Where the app stands, and the `name` of the model; of a function that was exported, the `function`, and
            how it takes arrays; the `concurrency` of one that works on requests side by side.
    """
    (folder / "model.py").write_text(MODEL_FILE, encoding="utf-8")
    (folder / APP_FILE).write_text(json.dumps(app), encoding="utf-8")

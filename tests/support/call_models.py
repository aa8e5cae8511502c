"""Models with an endpoint, written against the bare form of calls: tensors and parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.python_models import DECOUPLED, add_python_model

__all__ = ["add_call_model"]

# Stands in front of every model: what a call brings, and the response to it.
_CALLS = """
BODY = "alipes.body"


def body(request):
    return given(request, BODY).flat[0]


def told(request, name):
    return json.loads(request.parameters())["alipes." + name]


def is_call(request):
    return pb_utils.get_input_tensor_by_name(request, BODY) is not None


def reply(data, **more):
    tensor = pb_utils.Tensor(BODY, np.array([data], dtype=object))
    return pb_utils.InferenceResponse([tensor], parameters={"alipes." + name: value for name, value in more.items()})


"""


def add_call_model(repository: Path, name: str, source: str, *, config: str = "", **members: Any) -> Path:
    """Writes a model with an endpoint; one that streams is decoupled. It takes tensors as well, X and Y.

    Args:
        repository: The folder of the models.
        name: The model's name.
        source: Its code, behind what all of them share.
        config: Further lines of its configuration.
        members: Members of the parameter `endpoint`.
    """
    endpoint = {"methods": ("POST",), "stream": False, **members}
    lines = f"parameters {{ key: \"endpoint\" value: {{ string_value: '{json.dumps(endpoint)}' }} }}\n"
    decoupled = DECOUPLED if endpoint["stream"] else ""
    return add_python_model(repository, name, _CALLS + source, config=lines + decoupled + config)

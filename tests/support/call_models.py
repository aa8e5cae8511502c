"""Models with an endpoint, written against the bare form of calls: tensors and parameters."""

from __future__ import annotations

import json
from pathlib import Path

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


def add_call_model(
    repository: Path,
    name: str,
    source: str,
    *,
    methods: tuple[str, ...] = ("POST",),
    stream: bool = False,
    config: str = "",
) -> Path:
    """Writes a model with an endpoint; one that streams is decoupled. It takes tensors as well, X and Y."""
    endpoint = json.dumps({"methods": methods, "stream": stream})
    lines = f"parameters {{ key: \"endpoint\" value: {{ string_value: '{endpoint}' }} }}\n"
    return add_python_model(repository, name, _CALLS + source, config=lines + (DECOUPLED if stream else "") + config)

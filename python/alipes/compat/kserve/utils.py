"""Small functions of the KServe SDK that scripts import: `kserve.utils.utils`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from alipes.compat.kserve.cloud_events import create_response_cloudevent, is_structured_cloudevent
from alipes.compat.kserve.constants import PredictorProtocol
from alipes.compat.kserve.predict_values import generate_uuid, get_predict_input, get_predict_response

__all__ = [
    "cpu_count",
    "create_response_cloudevent",
    "generate_uuid",
    "get_current_k8s_namespace",
    "get_default_target_namespace",
    "get_ig_namespace",
    "get_isvc_namespace",
    "get_predict_input",
    "get_predict_response",
    "is_running_in_k8s",
    "is_structured_cloudevent",
    "is_v1",
    "is_v2",
    "strtobool",
    "to_headers",
]

_SECRETS: Final = Path("/var/run/secrets/kubernetes.io/")
_TRUE: Final = ("y", "yes", "t", "true", "on", "1")
_FALSE: Final = ("n", "no", "f", "false", "off", "0")


def strtobool(val: str) -> bool:
    """The truth value that a word stands for.

    Raises:
        ValueError: If it stands for none.
    """
    word = val.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"invalid truth value {word!r}")


def cpu_count() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def is_running_in_k8s() -> bool:
    """Whether this process runs in a pod."""
    return _SECRETS.is_dir()


def get_current_k8s_namespace() -> str:
    """The namespace of the pod."""
    return (_SECRETS / "serviceaccount/namespace").read_text(encoding="utf-8").split("\n", 1)[0]


def get_default_target_namespace() -> str:
    """The namespace of the pod, or `default` outside of one."""
    return get_current_k8s_namespace() if is_running_in_k8s() else "default"


def get_isvc_namespace(inferenceservice: Any) -> str:
    """The namespace of an InferenceService."""
    return inferenceservice.metadata.namespace or get_default_target_namespace()


def get_ig_namespace(inferencegraph: Any) -> str:
    """The namespace of an InferenceGraph."""
    return inferencegraph.metadata.namespace or get_default_target_namespace()


def to_headers(context: Any) -> dict[str, str]:
    """The metadata of a call of grpcio's servers, by name."""
    metadata: list[Any] = list(context.invocation_metadata())
    if hasattr(context, "trailing_metadata"):
        metadata += context.trailing_metadata() or ()
    return {one.key: one.value for one in metadata}


def is_v1(protocol: str | PredictorProtocol) -> bool:
    """Whether a protocol is V1."""
    return _is(protocol, PredictorProtocol.REST_V1)


def is_v2(protocol: str | PredictorProtocol) -> bool:
    """Whether a protocol is V2 over HTTP."""
    return _is(protocol, PredictorProtocol.REST_V2)


def _is(protocol: str | PredictorProtocol, expected: PredictorProtocol) -> bool:
    return protocol == expected or (isinstance(protocol, str) and protocol.lower() == expected.value)

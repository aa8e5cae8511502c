"""The runtimes: how KServe runs the server for each format of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from alipes.deploy.kserve.container import METRICS_PORT, server_container
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.metadata import GROUP, metadata

__all__ = ["FORMATS", "MODELS", "runtime_name", "runtimes"]

Object = dict[str, Any]

MODELS: Final = "/mnt/models"
"""Where KServe puts models."""
MANY: Final = "models"
"""The suffix of the runtime of services with many models."""

FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "onnx": ("1",),
    "triton": ("2",),
    "sklearn": ("0", "1"),
    "xgboost": ("1", "2", "3"),
    "lightgbm": ("3", "4"),
    "pytorch": ("1", "2"),
    "tensorflow": ("1", "2"),
    "mlflow": ("1", "2", "3"),
}
"""The formats, with the major versions by which services ask for them."""
PICKLED: Final = frozenset({"sklearn", "mlflow"})
"""Formats whose models are pickles as a rule."""
SERVICE: Final = "{{.Name}}"
"""What KServe replaces by the name of the service."""


def runtime_name(wanted: KServe, model_format: str) -> str:
    """The name of the runtime of a format."""
    return f"{wanted.runtimes.name}-{model_format}"


def runtimes(wanted: KServe) -> list[Object]:
    """The runtime of each format, and that of services with many models where there is one."""
    if not wanted.runtimes.written:
        return []
    written = [_runtime(wanted, name, [name], many=False) for name in wanted.runtimes.formats or FORMATS]
    if wanted.models.items:
        formats = list(dict.fromkeys([wanted.predictor.format, *(model.format for model in wanted.models.items)]))
        written.append(_runtime(wanted, MANY, formats, many=True))
    return written


def _runtime(wanted: KServe, suffix: str, formats: Sequence[str], *, many: bool) -> Object:
    kind = "ClusterServingRuntime" if wanted.runtimes.scope == "cluster" else "ServingRuntime"
    spec: Object = {
        "annotations": {
            "prometheus.kserve.io/port": str(METRICS_PORT),
            "prometheus.kserve.io/path": "/metrics",
        },
        "supportedModelFormats": [
            {"name": name, "version": version} | _choice(wanted, many=many)
            for name in formats
            for version in FORMATS[name]
        ],
        "protocolVersions": ["v1", "v2", "grpc-v2"],
        "containers": [_container(wanted, formats, many=many)],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    if wanted.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.pull_secrets]
    head = metadata(wanted, runtime_name(wanted, suffix))
    # A runtime belongs to no single service.
    head["labels"] = wanted.labels | {"app.kubernetes.io/name": "alipes"}
    head["annotations"] = {f"{GROUP}/server-type": "alipes"}  # KServe changes nothing for servers that it does not know
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": head, "spec": spec}


def _choice(wanted: KServe, *, many: bool) -> Object:
    """Whether KServe may choose it by itself; never for a service with many models, which names it."""
    if many or not wanted.runtimes.chosen:
        return {"autoSelect": False}
    return {"autoSelect": True, "priority": wanted.runtimes.priority}


def _models(wanted: KServe, formats: Sequence[str], *, many: bool) -> list[str]:
    """The arguments that say which models are served: one by the service's name, or those that the agent loads."""
    own = f"--model-store={MODELS}"
    arguments = [own, "--model-control-mode=explicit"] if many else [f"--model-name={SERVICE}", own]
    if wanted.runtimes.pickles and PICKLED.intersection(formats):
        arguments.append(f"--allow-pickles={'*' if many else SERVICE}")
    return arguments


def _container(wanted: KServe, formats: Sequence[str], *, many: bool) -> Object:
    return server_container(wanted, wanted.image, _models(wanted, formats, many=many))

"""KServe's kinds, and where their objects are."""

from __future__ import annotations

from typing import Final

from alipes.cloud.kubernetes.resources import Kind

__all__ = ["INFERENCE_SERVICES", "OWNED", "RUNTIMES"]

_ALPHA: Final = "/apis/serving.kserve.io/v1alpha1"

INFERENCE_SERVICES: Final = Kind("/apis/serving.kserve.io/v1beta1", "inferenceservices")

OWNED: Final[dict[str, Kind]] = {
    "ServiceAccount": Kind("/api/v1", "serviceaccounts"),
    "LocalModelCache": Kind(_ALPHA, "localmodelcaches", is_namespaced=False),
    "LocalModelNamespaceCache": Kind(_ALPHA, "localmodelnamespacecaches"),
    "InferenceService": INFERENCE_SERVICES,
    "TrainedModel": Kind(_ALPHA, "trainedmodels"),
    "InferenceGraph": Kind(_ALPHA, "inferencegraphs"),
}
"""What one deployment may have for itself, in the order in which it is made."""

RUNTIMES: Final[dict[str, Kind]] = {
    "ClusterServingRuntime": Kind(_ALPHA, "clusterservingruntimes", is_namespaced=False),
    "ServingRuntime": Kind(_ALPHA, "servingruntimes"),
}
"""What deployments share."""

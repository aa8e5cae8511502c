"""How many servers there are, and how many maintenance may take away."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.description import Description
from alipes.deploy.kubernetes.metadata import metadata, selector

__all__ = ["disruption_budget", "scaler"]

Object = dict[str, Any]

PENDING: Final = "nv_inference_pending_request_count"
"""Requests that wait, by model."""
_SHRINK_S: Final = 300
"""Seconds of less load after which servers are taken away: models take long to load."""


def disruption_budget(description: Description) -> Object:
    """Most servers that maintenance may take away at the same time."""
    spec = {"maxUnavailable": description.unavailable, "selector": {"matchLabels": selector(description)}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(description),
        "spec": spec,
    }


def scaler(description: Description) -> Object | None:
    """What decides how many servers there are, where load does."""
    if description.scaling.kind == "hpa":
        return _pod_autoscaler(description)
    return _scaled_object(description) if description.scaling.kind == "keda" else None


def _target(description: Description) -> Object:
    kind = "StatefulSet" if description.streams else "Deployment"
    return {"apiVersion": "apps/v1", "kind": kind, "name": description.name}


def _pod_autoscaler(description: Description) -> Object:
    scaling = description.scaling
    metrics: list[Object] = []
    if scaling.cpu_percent:
        target: Object = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if scaling.pending_requests:
        target = {"type": "AverageValue", "averageValue": str(scaling.pending_requests)}
        metrics.append({"type": "Pods", "pods": {"metric": {"name": PENDING}, "target": target}})
    spec = {
        "scaleTargetRef": _target(description),
        "minReplicas": scaling.least,
        "maxReplicas": scaling.most,
        "metrics": metrics,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": _SHRINK_S}},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(description),
        "spec": spec,
    }


def _scaled_object(description: Description) -> Object:
    scaling = description.scaling
    triggers: list[Object] = []
    if scaling.cpu_percent:
        triggers.append({"type": "cpu", "metricType": "Utilization", "metadata": {"value": str(scaling.cpu_percent)}})
    if scaling.pending_requests:
        query = f'sum({PENDING}{{app_kubernetes_io_instance="{description.name}"}})'
        question = {
            "serverAddress": scaling.prometheus,
            "query": query,
            "threshold": str(scaling.pending_requests),
        }
        triggers.append({"type": "prometheus", "metadata": question})
    spec = {
        "scaleTargetRef": _target(description),
        "minReplicaCount": scaling.least,
        "maxReplicaCount": scaling.most,
        "cooldownPeriod": _SHRINK_S,
        "triggers": triggers,
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata(description),
        "spec": spec,
    }

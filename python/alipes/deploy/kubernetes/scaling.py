"""How many servers there are, and how many maintenance may take away."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.description import Description, Scaling
from alipes.deploy.kubernetes.metadata import metadata, selector

__all__ = ["CONCURRENCY", "LONGEST_WAIT", "PENDING", "disruption_budget", "scaler"]

Object = dict[str, Any]

PENDING: Final = "nv_inference_pending_request_count"
"""Requests that wait, by model."""
CONCURRENCY: Final = "alipes_inference_concurrency"
"""Requests that wait or are executed, by model."""
LONGEST_WAIT: Final = "alipes_inference_longest_wait_seconds"
"""For how long the request has waited that has waited longest, by model."""
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
    for name, value in _wanted(scaling):
        target = {"type": "AverageValue", "averageValue": value}
        metrics.append({"type": "Pods", "pods": {"metric": {"name": name}, "target": target}})
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


def _wanted(scaling: Scaling) -> list[tuple[str, str]]:
    """The metrics of pods that are looked at, each with its target for a pod."""
    numbers = ((PENDING, scaling.pending_requests), (CONCURRENCY, scaling.concurrency))
    wanted = [(name, str(number)) for name, number in numbers if number]
    # Kubernetes' own form of a number with a fraction.
    return [*wanted, *([(LONGEST_WAIT, f"{scaling.wait_ms}m")] if scaling.wait_ms else [])]


def _trigger(description: Description, query: str, threshold: str) -> Object:
    selected = query % f'{{app_kubernetes_io_instance="{description.name}"}}'
    question = {"serverAddress": description.scaling.prometheus, "query": selected, "threshold": threshold}
    return {"type": "prometheus", "metadata": question}


def _scaled_object(description: Description) -> Object:
    scaling = description.scaling
    triggers: list[Object] = []
    if scaling.cpu_percent:
        triggers.append({"type": "cpu", "metricType": "Utilization", "metadata": {"value": str(scaling.cpu_percent)}})
    if scaling.pending_requests:
        triggers.append(_trigger(description, f"sum({PENDING}%s)", str(scaling.pending_requests)))
    if scaling.concurrency:
        triggers.append(_trigger(description, f"sum({CONCURRENCY}%s)", str(scaling.concurrency)))
    if scaling.wait_ms:
        # One number for all servers: compared as it is, and not divided among them.
        trigger = _trigger(description, f"max({LONGEST_WAIT}%s)", f"{scaling.wait_ms / 1000:g}")
        triggers.append({"type": "prometheus", "metricType": "Value", "metadata": trigger["metadata"]})
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

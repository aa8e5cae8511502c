"""All objects of a deployment, in the order in which they are best sent."""

from __future__ import annotations

from typing import Any

from alipes.deploy.description import Description
from alipes.deploy.kubernetes.metadata import metadata, selector
from alipes.deploy.kubernetes.networking import network_policy, own_names, service
from alipes.deploy.kubernetes.pod import pod
from alipes.deploy.kubernetes.scaling import disruption_budget, scaler
from alipes.deploy.repository_place import check_repository

__all__ = ["kubernetes_objects"]

Object = dict[str, Any]


def kubernetes_objects(description: Description) -> list[Object]:
    """The objects, without those that the description does without.

    Raises:
        ConfigError: If no pod could reach the models.
    """
    check_repository(description.repository)
    parts = [
        network_policy(description),
        service(description),
        own_names(description),
        _workload(description),
        disruption_budget(description),
        scaler(description),
    ]
    return [part for part in parts if part is not None]


def _workload(description: Description) -> Object:
    """A Deployment; for streams a StatefulSet, whose pods keep their names."""
    spec: Object = {}
    if description.scaling.kind == "none":  # else the scaler decides, and each apply would undo it
        spec["replicas"] = description.replicas
    if description.streams:
        spec |= {"serviceName": f"{description.name}-servers", "podManagementPolicy": "Parallel"}
    else:
        spec |= {
            "progressDeadlineSeconds": description.probes.startup_s + 120,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        }
    spec |= {"selector": {"matchLabels": selector(description)}, "template": pod(description)}
    kind = "StatefulSet" if description.streams else "Deployment"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(description), "spec": spec}

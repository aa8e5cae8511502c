"""When deployments, daemon sets and services are ready: decided from their objects alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["address_of", "daemon_set_ready", "deployment_ready", "is_observed", "progress_of"]


def is_observed(one: Mapping[str, Any]) -> bool:
    """Whether a controller has seen the object as it is now: its status is about a former one until then."""
    return int(one.get("status", {}).get("observedGeneration", 0)) >= int(one["metadata"]["generation"])


def replicas_of(deployment: Mapping[str, Any]) -> int:
    """How many pods a deployment wants."""
    return int(deployment["spec"].get("replicas", 1))


def deployment_ready(deployment: Mapping[str, Any]) -> bool:
    """Whether all pods of a deployment are of its newest revision and available, and none is left of a former one.

    The same holds for stateful sets, whose status has the same fields.
    """
    status = deployment.get("status", {})
    counts = {int(status.get(field, 0)) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    return is_observed(deployment) and counts == {replicas_of(deployment)}


def progress_of(deployment: Mapping[str, Any]) -> str:
    """How far a deployment has come, in words."""
    if not is_observed(deployment):
        return "no controller has seen it yet"
    status, wanted = deployment.get("status", {}), replicas_of(deployment)
    updated, available = int(status.get("updatedReplicas", 0)), int(status.get("availableReplicas", 0))
    old = int(status.get("replicas", 0)) - updated
    rest = f", {old} of a former revision left" if old > 0 else ""
    return f"{min(updated, available)} of {wanted} pods ready{rest}"


def daemon_set_ready(one: Mapping[str, Any]) -> bool:
    """Whether every node that a daemon set is for has its pod, of the newest revision and ready."""
    status = one.get("status", {})
    wanted = int(status.get("desiredNumberScheduled", 0))
    counts = (int(status.get("numberReady", 0)), int(status.get("updatedNumberScheduled", wanted)))
    return is_observed(one) and counts == (wanted, wanted)


def address_of(service: Mapping[str, Any]) -> str | None:
    """The address of a service, an IP address or a name; None while its load balancer has none."""
    spec, metadata = service["spec"], service["metadata"]
    if spec.get("type") == "LoadBalancer":
        ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
        address: str | None = ingress[0].get("ip") or ingress[0].get("hostname")
        return address
    if spec.get("type") == "ExternalName":
        return str(spec["externalName"])
    cluster_ip = spec.get("clusterIP")
    if cluster_ip == "None":  # a headless service is a name that resolves to its pods
        return f"{metadata['name']}.{metadata['namespace']}.svc"
    return cluster_ip or None

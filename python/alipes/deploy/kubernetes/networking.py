"""Addresses in front of the servers, and who may connect."""

from __future__ import annotations

from typing import Any

from alipes.deploy.description import Description
from alipes.deploy.kubernetes.metadata import HTTP, metadata, selector

__all__ = ["network_policy", "own_names", "service"]

Object = dict[str, Any]


def service(description: Description) -> Object:
    """One address for all servers. It spreads connections, not calls."""
    head = metadata(description)
    if description.service.annotations:
        head["annotations"] = dict(description.service.annotations)
    spec = {"type": description.service.type, "selector": selector(description), "ports": _ports(description)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": spec}


def own_names(description: Description) -> Object:
    """The addresses of all servers under one name of the DNS, for clients that spread their calls themselves."""
    spec = {"clusterIP": "None", "selector": selector(description), "ports": _ports(description)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(description, "-servers"), "spec": spec}


def network_policy(description: Description) -> Object | None:
    """Who may connect, where that is restricted."""
    network = description.network
    if not network.restricted:
        return None
    peers: list[Object] = [{"podSelector": {}}]
    peers += [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in network.namespaces
    ]
    ports = [{"protocol": "TCP", "port": name} for name in (HTTP, "grpc", "metrics")]
    spec = {
        "podSelector": {"matchLabels": selector(description)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": peers, "ports": ports}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(description),
        "spec": spec,
    }


def _ports(description: Description) -> list[Object]:
    ports = ((HTTP, description.ports.http), ("grpc", description.ports.grpc), ("metrics", description.ports.metrics))
    return [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in ports]

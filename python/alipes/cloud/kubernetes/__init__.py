"""Kubernetes, by its official client: objects are sent, followed, scaled, rolled back and removed.

`Cluster` is a cluster that a kubeconfig, or a client of `kubernetes` itself, leads to:

    from alipes.cloud.kubernetes import Cluster

    cluster = Cluster(context="lab")
    cluster.deploy("server.yaml", name="server", gpus=2)
    cluster.wait_for_deployment("server")
    print(cluster.wait_for_service("server"))
    cluster.scale("server", 4)
    cluster.remove_deployment("server")

Needs the extra `deploy`. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Cluster", "LogLine", "Made", "PodState", "Status"]

if TYPE_CHECKING:
    from alipes.cloud.kubernetes.cluster import Cluster
    from alipes.cloud.kubernetes.logs import LogLine
    from alipes.cloud.kubernetes.made import Made
    from alipes.cloud.kubernetes.status import PodState, Status

_HOMES = {
    "Cluster": "alipes.cloud.kubernetes.cluster",
    "LogLine": "alipes.cloud.kubernetes.logs",
    "Made": "alipes.cloud.kubernetes.made",
    "PodState": "alipes.cloud.kubernetes.status",
    "Status": "alipes.cloud.kubernetes.status",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

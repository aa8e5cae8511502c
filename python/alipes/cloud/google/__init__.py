"""Clusters of Google Cloud (GKE): made, given GPUs, used and removed, by Google's own client.

    from alipes.cloud import google as cb
    from google.cloud import container_v1 as container

    manager = cb.ClusterManager(project="my-project", zone="us-east4-b")
    with manager.add(container.Cluster(name="demo", initial_node_count=1)) as cluster:
        pool = container.NodePool(
            name="gpus", initial_node_count=2, config=cb.create_gpu_node_pool_config(vcpus=16, gpus=4, gpu_type="t4")
        )
        with cluster.add(pool):
            cluster.deploy("server.yaml", name="server", gpus=4)
            cluster.k8s_client.wait_for_deployment("server")

Needs the extra `google`. Everything here is tested against a simulator of Google's API, and a real Kubernetes behind
it: no cluster of Google Cloud was ever made by these tests. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Cluster", "ClusterManager", "Estimate", "NodePool", "create_gpu_node_pool_config", "estimate"]

if TYPE_CHECKING:
    from alipes.cloud.google.cluster import Cluster
    from alipes.cloud.google.costs import Estimate, estimate
    from alipes.cloud.google.machines import create_gpu_node_pool_config
    from alipes.cloud.google.manager import ClusterManager
    from alipes.cloud.google.node_pool import NodePool

_HOMES = {
    "Cluster": "alipes.cloud.google.cluster",
    "ClusterManager": "alipes.cloud.google.manager",
    "Estimate": "alipes.cloud.google.costs",
    "NodePool": "alipes.cloud.google.node_pool",
    "create_gpu_node_pool_config": "alipes.cloud.google.machines",
    "estimate": "alipes.cloud.google.costs",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

"""A cluster of Google Cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from alipes.cloud.google import drivers
from alipes.cloud.google.api_server import api_client
from alipes.cloud.google.kubernetes_client import KubernetesClient
from alipes.cloud.google.ledger import Ledger
from alipes.cloud.google.node_pool import NodePool
from alipes.cloud.google.parent import Parent
from alipes.cloud.google.resource import Resource
from alipes.cloud.google.session import Session
from alipes.cloud.kubernetes.handles import DaemonSet, Deployment, Handle, Service, found, handles

__all__ = ["Cluster"]


class Cluster(Resource, Parent[NodePool]):
    """A cluster; `ClusterManager.create_resource` and `ClusterManager.add` make one.

    Attributes:
        resources: The node pools that were made from here, by name.
    """

    noun: ClassVar[str] = "cluster"

    def __init__(self, session: Session, ledger: Ledger, path: str, config: Any) -> None:
        """Takes the connection, the list of what was made, its full name and its description."""
        super().__init__(session, ledger, path, config)
        self.resources = {}
        self._kubernetes: KubernetesClient | None = None

    @property
    def k8s_client(self) -> KubernetesClient:
        """What is in the cluster: a `alipes.cloud.kubernetes.Cluster`.

        Raises:
            CloudError: If the cluster is not ready.
        """
        if self._kubernetes is None:
            self._kubernetes = KubernetesClient(api_client(self.get(), self._session), self._session.renew)
        return self._kubernetes

    def deploy(
        self,
        file: str | Path,
        /,
        repo: str | None = None,
        branch: str | None = None,
        namespace: str = "default",
        ignore_if_exists: bool = True,
        **values: object,
    ) -> list[Handle]:
        """Make the objects of a file in the cluster; see `alipes.cloud.kubernetes.Cluster.deploy`.

        Returns:
            The objects in the order of the file.
        """
        client = self.k8s_client
        made = client.deploy(
            file, repo=repo, branch=branch, namespace=namespace, ignore_if_exists=ignore_if_exists, **values
        )
        return handles(client, made)

    def remove_deployment(self, name: str, namespace: str = "default") -> None:
        """Remove a deployment, and wait until it is gone."""
        self.k8s_client.remove_deployment(name, namespace)

    def deploy_gpu_drivers(self, timeout: float | None = None) -> None:
        """Have NVIDIA's driver installed on nodes with GPUs, those that come later too, and wait for it.

        GKE installs it by itself on the nodes of `create_gpu_node_pool_config`; these are left to GKE.
        """
        client = self.k8s_client
        client.apply([drivers.daemon_set()])
        client.wait_for_daemon_set(drivers.NAME, drivers.NAMESPACE, timeout_s=timeout)

    def deployments(self) -> dict[str, dict[str, Deployment]]:
        """The deployments by namespace and name, of `default` and `kube-system`."""
        return found(self.k8s_client, Deployment)

    def services(self) -> dict[str, dict[str, Service]]:
        """The services by namespace and name, of `default` and `kube-system`."""
        return found(self.k8s_client, Service)

    def daemon_sets(self) -> dict[str, dict[str, DaemonSet]]:
        """The daemon sets by namespace and name, of `default` and `kube-system`."""
        return found(self.k8s_client, DaemonSet)

    def _request(self, config: Any) -> dict[str, Any]:
        return {"parent": self.path, "node_pool": config}

    def _child(self, config: Any) -> NodePool:
        from google.cloud import container_v1 as container

        if not isinstance(config, container.NodePool):
            raise TypeError(f"a node pool is described by container_v1.NodePool, not by {type(config).__name__}")
        return NodePool(self._session, self._ledger, f"{self.path}/nodePools/{config.name}", config)

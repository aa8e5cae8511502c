"""What is in a cluster of Google Cloud, under the names of cloudbreak."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from alipes.cloud.kubernetes.cluster import Cluster

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["KubernetesClient"]


class KubernetesClient(Cluster):
    """A cluster whose token is renewed where the API server no longer accepts it."""

    def __init__(self, client: ApiClient, renew: Callable[[], None]) -> None:
        """Takes a client of `kubernetes`, and what gets a new token."""
        super().__init__(client=client, namespace="default")
        self._api.renew = renew

    @property
    def _client(self) -> ApiClient:
        """The client of `kubernetes`, as scripts for cloudbreak use it."""
        return self.client

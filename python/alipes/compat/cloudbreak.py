"""Clusters under the names and with the arguments of `hermes.cloudbreak`, the second generation of cloudbreak."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.cloud import google

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

    from alipes.cloud.google.session import Session
    from alipes.cloud.kubernetes.handles import Handle

__all__ = ["Cluster", "ClusterManager"]


class Cluster(google.Cluster):
    """A cluster, whose `deploy` has hermes' argument for objects that exist."""

    def deploy(  # type: ignore[override]  # one name fewer for wildcards
        self,
        file: str | Path,
        /,
        repo: str | None = None,
        branch: str | None = None,
        namespace: str = "default",
        ignore_if_exists: bool = True,
        exists_ok: bool = True,
        **values: object,
    ) -> list[Handle]:
        """Make the objects of a file in the cluster; see `alipes.cloud.google.Cluster.deploy`."""
        ignored = ignore_if_exists and exists_ok
        return super().deploy(file, repo, branch, namespace, ignored, **values)


class ClusterManager(google.ClusterManager):
    """Clusters of a zone, whose project may be that of the credentials."""

    def __init__(
        self,
        zone: str,
        project: str | None = None,
        credentials: Credentials | str | Path | None = None,
        throttle_secs: float = 1.0,
        *,
        session: Session | None = None,
    ) -> None:
        """Connects, and lists the clusters that there are; see `alipes.cloud.google.ClusterManager`."""
        super().__init__(project, zone, credentials, throttle_secs=throttle_secs, session=session)

    def _child(self, config: Any) -> Cluster:
        known = super()._child(config)
        return Cluster(self._session, self._ledger, known.path, config)

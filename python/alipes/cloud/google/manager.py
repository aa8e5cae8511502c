"""The clusters of a project in a zone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.cloud.google.cluster import Cluster
from alipes.cloud.google.ledger import Ledger
from alipes.cloud.google.parent import Parent
from alipes.cloud.google.session import Session, open_session
from alipes.errors import ConfigError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

__all__ = ["ClusterManager"]


class ClusterManager(Parent[Cluster]):
    """Makes, finds and removes clusters.

    Attributes:
        name: Google's name for the place: `projects/PROJECT/locations/ZONE`.
        project: The project.
        zone: The zone, or the region.
        resources: The clusters of the project in the zone, by name.
    """

    def __init__(
        self,
        project: str | None,
        zone: str,
        credentials: Credentials | str | Path | None = None,
        *,
        throttle_secs: float = 1.0,
        session: Session | None = None,
    ) -> None:
        """Connects, and lists the clusters that there are.

        Args:
            project: The project, which is billed; None is that of the credentials.
            zone: The zone, or the region.
            credentials: Google's credentials, or the file of a service account; otherwise those of the environment.
            throttle_secs: How far apart requests are at least.
            session: An existing connection.

        Raises:
            CloudError: If there are no credentials, or Google does not accept them.
            ConfigError: If no project is named.
            NotOffered: If Google's client is not installed.
        """
        self._session = session or open_session(credentials, throttle_secs)
        self._ledger = Ledger()
        named = project or self._session.project
        if not named:
            raise ConfigError("no project: name it, or use credentials that do", key="project")
        self.project, self.zone = named, zone
        self.name = f"projects/{named}/locations/{zone}"
        listed = self._session.call("list_clusters", parent=self.name).clusters
        self.resources = {one.name: self._child(one) for one in listed}

    def removal_commands(self) -> list[str]:
        """The commands that remove what was made from here."""
        return self._ledger.commands()

    def _request(self, config: Any) -> dict[str, Any]:
        return {"parent": self.name, "cluster": config}

    def _child(self, config: Any) -> Cluster:
        from google.cloud import container_v1 as container

        if not isinstance(config, container.Cluster):
            raise TypeError(f"a cluster is described by container_v1.Cluster, not by {type(config).__name__}")
        return Cluster(self._session, self._ledger, f"{self.name}/clusters/{config.name}", config)

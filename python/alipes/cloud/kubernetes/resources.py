"""Where objects are kept: the path of a kind, as the API server itself says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.refusals import Refused
from alipes.errors import CloudError

__all__ = [
    "CONTROLLER_REVISIONS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "EVENTS",
    "JOBS",
    "PODS",
    "REPLICA_SETS",
    "SERVICES",
    "STATEFUL_SETS",
    "Kind",
    "Kinds",
    "item_path",
]


@dataclass(frozen=True)
class Kind:
    """Where objects of a kind are."""

    root: str
    plural: str
    is_namespaced: bool = True
    has_controller: bool = False
    """Whether its status says which generation it is about."""

    def collection(self, namespace: str) -> str:
        """The path of all that a namespace has, or the cluster where the kind knows no namespaces."""
        if not self.is_namespaced:
            return f"{self.root}/{self.plural}"
        return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"


PODS: Final = Kind("/api/v1", "pods")
SERVICES: Final = Kind("/api/v1", "services")
EVENTS: Final = Kind("/api/v1", "events")
DEPLOYMENTS: Final = Kind("/apis/apps/v1", "deployments", has_controller=True)
REPLICA_SETS: Final = Kind("/apis/apps/v1", "replicasets")
STATEFUL_SETS: Final = Kind("/apis/apps/v1", "statefulsets", has_controller=True)
CONTROLLER_REVISIONS: Final = Kind("/apis/apps/v1", "controllerrevisions")
DAEMON_SETS: Final = Kind("/apis/apps/v1", "daemonsets", has_controller=True)
JOBS: Final = Kind("/apis/batch/v1", "jobs")


def item_path(kind: Kind, namespace: str, name: str) -> str:
    """The path of one object."""
    return f"{kind.collection(namespace)}/{quote(name, safe='')}"


class Kinds:
    """The kinds of an API server, custom ones too, each group asked for once."""

    def __init__(self, api: Api) -> None:
        """Takes the server, and asks nothing yet."""
        self._api = api
        self._known: dict[str, dict[str, Kind]] = {}

    def of(self, document: Mapping[str, Any]) -> Kind:
        """Where an object belongs.

        Raises:
            CloudError: If the server has no such kind.
        """
        version, name = str(document["apiVersion"]), str(document["kind"])
        kind = self._of_version(version).get(name)
        if kind is None:
            # It may be there by now: custom kinds come with objects of their own.
            self._known.pop(version, None)
            kind = self._of_version(version).get(name)
        if kind is None:
            raise CloudError(f"the cluster has no kind {name} of {version}", reason="NotFound")
        return kind

    def _of_version(self, version: str) -> dict[str, Kind]:
        if version not in self._known:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            self._known[version] = self._read(root)
        return self._known[version]

    def _read(self, root: str) -> dict[str, Kind]:
        try:
            listed = self._api.get(root)["resources"]
        except Refused as error:
            if error.status == 404:
                return {}
            raise
        return {
            one["kind"]: Kind(root, one["name"], bool(one["namespaced"]))
            for one in listed
            if "/" not in one["name"]  # a part of another, such as its status
        }

"""The revisions of deployments and stateful sets, as Kubernetes keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.pods import owned, replica_sets_of, revision_of, selector_of
from alipes.cloud.kubernetes.resources import CONTROLLER_REVISIONS

__all__ = ["Revision", "current_revision", "revisions_of"]

_HASH_LABEL: Final = "pod-template-hash"


@dataclass(frozen=True)
class Revision:
    """A revision.

    Attributes:
        number: Its number; a rollback gives the pods of a former one a new number.
        name: The object that holds it.
        template: The pods that it describes.
    """

    number: int
    name: str
    template: Document


def revisions_of(api: Api, workload: Mapping[str, Any]) -> list[Revision]:
    """The revisions that there are, oldest first."""
    if workload["kind"] != "StatefulSet":
        return [Revision(revision_of(one), one["metadata"]["name"], _of(one)) for one in replica_sets_of(api, workload)]
    path = CONTROLLER_REVISIONS.collection(workload["metadata"]["namespace"])
    found = owned(api.get(path, labelSelector=selector_of(workload))["items"], workload)
    return sorted(
        (Revision(int(one["revision"]), one["metadata"]["name"], _plain(one)) for one in found),
        key=lambda revision: revision.number,
    )


def current_revision(api: Api, workload: Mapping[str, Any]) -> int:
    """The number of the newest revision; 0 before a controller has seen it."""
    if workload["kind"] != "StatefulSet":
        return revision_of(workload)
    newest = workload.get("status", {}).get("updateRevision")
    return next((one.number for one in revisions_of(api, workload) if one.name == newest), 0)


def _of(replica_set: Document) -> Document:
    """The pods of a replica set as their deployment described them."""
    template: Document = replica_set["spec"]["template"]
    labels = {key: value for key, value in template["metadata"].get("labels", {}).items() if key != _HASH_LABEL}
    return {**template, "metadata": {**template["metadata"], "labels": labels}}


def _plain(controller_revision: Document) -> Document:
    """The pods of a controller revision, which holds them as a patch."""
    template: Document = controller_revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}

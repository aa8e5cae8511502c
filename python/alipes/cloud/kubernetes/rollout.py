"""Deployments changed: how many pods, and back to a former revision."""

from __future__ import annotations

from typing import Any

from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.pods import replica_sets_of, revision_of
from alipes.cloud.kubernetes.resources import DEPLOYMENTS, item_path
from alipes.errors import CloudError, ConfigError

__all__ = ["rollback", "scale"]

_HASH_LABEL = "pod-template-hash"


def scale(api: Api, namespace: str, name: str, replicas: int) -> None:
    """Have so many pods.

    Raises:
        ConfigError: If it is no count.
    """
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        raise ConfigError(f"replicas: {replicas!r} is not a count", key="replicas")
    api.merge(f"{item_path(DEPLOYMENTS, namespace, name)}/scale", {"spec": {"replicas": replicas}})


def rollback(api: Api, namespace: str, name: str, revision: int | None) -> int:
    """Run the pods of a former revision again.

    Args:
        api: The API server.
        namespace: The deployment's namespace.
        name: Its name.
        revision: The revision; None is the one before the current.

    Returns:
        The revision whose pods run again.

    Raises:
        CloudError: If Kubernetes has kept no such revision.
    """
    path = item_path(DEPLOYMENTS, namespace, name)
    deployment = api.get(path)
    current = revision_of(deployment)
    former = {revision_of(one): one for one in replica_sets_of(api, deployment) if revision_of(one) != current}
    chosen = max(former, default=None) if revision is None else revision
    if chosen is None:
        raise CloudError(f"deployment {namespace}/{name} has no former revision", reason="NotFound")
    if chosen not in former:
        known = ", ".join(map(str, sorted(former))) or "none"
        raise CloudError(
            f"deployment {namespace}/{name} has no former revision {chosen}; it has: {known}", reason="NotFound"
        )
    api.replace_fields(path, [{"op": "replace", "path": "/spec/template", "value": _template(former[chosen])}])
    return chosen


def _template(replica_set: dict[str, Any]) -> dict[str, Any]:
    """The pods of a replica set as their deployment described them."""
    template: dict[str, Any] = replica_set["spec"]["template"]
    labels = {key: value for key, value in template["metadata"].get("labels", {}).items() if key != _HASH_LABEL}
    return {**template, "metadata": {**template["metadata"], "labels": labels}}

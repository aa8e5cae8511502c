"""Deployments and stateful sets changed: how many pods, and back to a former revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.revisions import current_revision, revisions_of
from alipes.errors import CloudError, ConfigError

__all__ = ["rollback", "scale"]


def scale(api: Api, path: str, replicas: int) -> None:
    """Have so many pods.

    Raises:
        ConfigError: If it is no count.
    """
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        raise ConfigError(f"replicas: {replicas!r} is not a count", key="replicas")
    api.merge(f"{path}/scale", {"spec": {"replicas": replicas}})


def rollback(api: Api, path: str, workload: Mapping[str, Any], what: str, revision: int | None) -> int:
    """Run the pods of a former revision again.

    Args:
        api: The API server.
        path: Where it has the deployment or stateful set.
        workload: That, as it is.
        what: Its name for messages.
        revision: The revision; None is the one before the current.

    Returns:
        The revision whose pods run again.

    Raises:
        CloudError: If Kubernetes has kept no such revision.
    """
    current = current_revision(api, workload)
    former = {one.number: one for one in revisions_of(api, workload) if one.number != current}
    chosen = max(former, default=None) if revision is None else revision
    if chosen is None:
        raise CloudError(f"{what} has no former revision", reason="NotFound")
    if chosen not in former:
        known = ", ".join(map(str, sorted(former))) or "none"
        raise CloudError(f"{what} has no former revision {chosen}; it has: {known}", reason="NotFound")
    api.replace_fields(path, [{"op": "replace", "path": "/spec/template", "value": former[chosen].template}])
    return chosen

"""Everything that may belong to a deployment, by its name alone."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.kubernetes.objects import kubernetes_objects
from alipes.deploy.reading import described

__all__ = ["INSTANCE", "belongings", "labels_on_kserve"]

INSTANCE: Final = "app.kubernetes.io/instance"
"""The label that says which deployment an object belongs to."""

_NAME: Final = "app.kubernetes.io/name"

_FULLEST: Final[tuple[dict[str, Any], ...]] = (
    {"network": {"restricted": True}, "scaling": {"kind": "hpa"}},
    {"scaling": {"kind": "keda"}, "streams": True},
)
"""Between them, these have every kind of object."""


def belongings(name: str) -> list[dict[str, Any]]:
    """The objects that a deployment of this name may have, in the order in which they are made.

    Raises:
        ConfigError: If no deployment can have this name.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for values in _FULLEST:
        for each in kubernetes_objects(described({"name": name, **values})):
            found[each["kind"], each["metadata"]["name"]] = each
    return list(found.values())


def labels_on_kserve(name: str | None = None) -> dict[str, str]:
    """The labels of what a deployment has on KServe, where names follow its models; or of everything of ours there.

    Args:
        name: Of the deployment. The runtimes, which belong to none, carry the labels of everything alone.
    """
    return {_NAME: "alipes"} if name is None else {_NAME: "alipes", INSTANCE: name}

"""Everything that may belong to a deployment, by its name alone."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.kubernetes.objects import kubernetes_objects
from alipes.deploy.reading import described

__all__ = ["INSTANCE", "belongings"]

INSTANCE: Final = "app.kubernetes.io/instance"
"""The label that says which deployment an object belongs to."""

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

"""Names and labels of KServe's objects."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.kserve.description import KServe

__all__ = ["GROUP", "metadata"]

GROUP: Final = "serving.kserve.io"
"""The group of its kinds, and of its annotations."""


def metadata(wanted: KServe, name: str) -> dict[str, Any]:
    """Metadata of an object. It has no namespace: the one that is sent to decides."""
    own = {"app.kubernetes.io/name": "alipes", "app.kubernetes.io/instance": wanted.name}
    return {"name": name, "labels": wanted.labels | own}

"""Names and labels, the same on every object."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.description import Description

__all__ = ["HTTP", "labels", "metadata", "scheme", "selector"]

HTTP: Final = "http"
"""Name of the port that probes ask."""


def selector(description: Description) -> dict[str, str]:
    """The labels by which pods are found; they never change, since Kubernetes refuses that."""
    return {"app.kubernetes.io/name": "alipes", "app.kubernetes.io/instance": description.name}


def labels(description: Description) -> dict[str, str]:
    """All labels."""
    return description.labels | selector(description)


def metadata(description: Description, suffix: str = "") -> dict[str, Any]:
    """Metadata of an object. It has no namespace: the one that is sent to decides."""
    return {"name": f"{description.name}{suffix}", "labels": labels(description)}


def scheme(description: Description) -> str:
    """Of the questions of probes."""
    return "HTTPS" if description.tls.secret else "HTTP"

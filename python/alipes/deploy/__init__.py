"""What runs a server on other machines: images, and text that people can read and keep: Kubernetes, Helm, and others.

A `Description` says what is wanted; every writer starts from it. Nothing here talks to a cluster. Names are imported on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Description", "check_objects", "described", "kubernetes_objects", "read_values"]

if TYPE_CHECKING:
    from alipes.deploy.checks import check_objects
    from alipes.deploy.description import Description
    from alipes.deploy.kubernetes.objects import kubernetes_objects
    from alipes.deploy.reading import described, read_values

_HOMES = {
    "Description": "alipes.deploy.description",
    "check_objects": "alipes.deploy.checks",
    "described": "alipes.deploy.reading",
    "kubernetes_objects": "alipes.deploy.kubernetes.objects",
    "read_values": "alipes.deploy.reading",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

"""What Google's API refuses."""

from __future__ import annotations

from alipes.errors import CloudError

__all__ = ["Busy", "Exists", "Missing"]


class Missing(CloudError, ValueError):
    """There is no such cluster or node pool."""


class Exists(CloudError):
    """There is one of that name already."""


class Busy(CloudError):
    """Another operation on the cluster is running; it may be asked again."""

"""What is raised where an image does not reach its registry."""

from __future__ import annotations

from alipes.errors import AlipesError

__all__ = ["PushError"]


class PushError(AlipesError):
    """A registry refuses an image, or does not answer; the message says what to do."""

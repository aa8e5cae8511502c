"""Shapes as people type them: `INPUT:D,D`."""

from __future__ import annotations

from alipes.cli.failures import UsageFailed

__all__ = ["read_shape"]


def read_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Reads `image:3,224,224`.

    Raises:
        UsageFailed: If it is none.
    """
    name, colon, sizes = text.rpartition(":")
    try:
        if colon and name:
            return name, tuple(int(size) for size in sizes.split(","))
    except ValueError:
        pass
    raise UsageFailed(f"write --shape INPUT:D,D such as image:3,224,224, not {text!r}")

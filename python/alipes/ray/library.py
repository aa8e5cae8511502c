"""Ray, imported where it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from alipes.errors import Unsupported

__all__ = ["ray_library"]


def ray_library(module: str = "ray", extra: str = "alipes[ray]") -> Any:
    """A module of Ray.

    Raises:
        Unsupported: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise Unsupported(f"this needs Ray: install it with `pip install '{extra}'`") from error

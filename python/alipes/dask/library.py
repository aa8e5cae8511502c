"""Dask, imported where it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from alipes.errors import Unsupported

__all__ = ["dask_library"]


def dask_library() -> Any:
    """The package `distributed`.

    Raises:
        Unsupported: If it is not installed.
    """
    try:
        return import_module("distributed")
    except ImportError as error:
        raise Unsupported("this needs Dask: install it with `pip install 'alipes[dask]'`") from error

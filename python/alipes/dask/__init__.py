"""Servers on a cluster of Dask: one beside each worker, which the tasks of that worker ask.

Needs the extra `dask`. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Infer", "ServerPlugin", "local_client"]

if TYPE_CHECKING:
    from alipes.dask.infer import Infer
    from alipes.dask.plugin import ServerPlugin, local_client

_HOMES = {
    "Infer": "alipes.dask.infer",
    "ServerPlugin": "alipes.dask.plugin",
    "local_client": "alipes.dask.plugin",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

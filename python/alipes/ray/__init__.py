"""Servers on a cluster of Ray: an actor with a server beside the tasks that ask it, and an ingress of Ray Serve.

Needs the extra `ray`. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Server", "ingress"]

if TYPE_CHECKING:
    from alipes.ray.ingress import ingress
    from alipes.ray.server import Server

_HOMES = {
    "Server": "alipes.ray.server",
    "ingress": "alipes.ray.ingress",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

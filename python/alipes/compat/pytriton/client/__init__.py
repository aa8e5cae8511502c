"""PyTriton's clients, on those of alipes."""

from __future__ import annotations

from alipes.compat.pytriton.client.aio import AsyncioDecoupledModelClient, AsyncioModelClient
from alipes.compat.pytriton.client.decoupled import DecoupledModelClient
from alipes.compat.pytriton.client.futures import FuturesModelClient
from alipes.compat.pytriton.client.sync import ModelClient

__all__ = [
    "AsyncioDecoupledModelClient",
    "AsyncioModelClient",
    "DecoupledModelClient",
    "FuturesModelClient",
    "ModelClient",
]

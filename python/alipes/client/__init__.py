"""Clients of model servers: `Client` and `AsyncClient` for single calls, `InferenceClient` for streams of requests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alipes.client.inference.client import InferenceClient
    from alipes.client.plain.aio import AsyncClient
    from alipes.client.plain.question import Answer
    from alipes.client.plain.retry import Retry
    from alipes.client.plain.shared import SharedMemory
    from alipes.client.plain.signature import Signature
    from alipes.client.plain.sync import Client

__all__ = ["Answer", "AsyncClient", "Client", "InferenceClient", "Retry", "SharedMemory", "Signature"]

# Public name -> module that defines it. Imported on first use: a client is quick to import.
_HOMES = {
    "Answer": "alipes.client.plain.question",
    "AsyncClient": "alipes.client.plain.aio",
    "Client": "alipes.client.plain.sync",
    "InferenceClient": "alipes.client.inference.client",
    "Retry": "alipes.client.plain.retry",
    "SharedMemory": "alipes.client.plain.shared",
    "Signature": "alipes.client.plain.signature",
}


def __getattr__(name: str) -> object:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

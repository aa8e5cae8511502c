"""Clients of model servers: `InferenceClient` for streams of requests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alipes.client.inference.client import InferenceClient

__all__ = ["InferenceClient"]

# Public name -> module that defines it. Imported on first use: a client is quick to import.
_HOMES = {"InferenceClient": "alipes.client.inference.client"}


def __getattr__(name: str) -> object:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

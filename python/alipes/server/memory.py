"""Keeps the C library's allocator from holding on to what unloaded models have freed.

Engines allocate through it. On its own, glibc learns from the first large block that is freed to keep such blocks in
its heaps, and gives these back at their ends only; a server that loads and unloads models would keep all the holes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

__all__ = ["bound_heaps", "give_back"]

# Blocks of this size are mapped each for itself, and unmapped when they are freed. Weights are; what an execution needs
# comes out of the engine's own arena. Measured with a model of 4 MiB of weights, 100 loads and unloads, 2 cores: 64 MB
# resident at the end instead of 100 to 112.
MAPPED_BYTES: Final = 4 << 20

_M_MMAP_THRESHOLD: Final = -3


def bound_heaps() -> None:
    """Has large blocks go back to the system at once when they are freed. For before the first engine is opened."""
    if (tune := _function("mallopt")) is not None:
        tune(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def give_back() -> None:
    """Gives the system what is free inside the heaps. Takes about two milliseconds where much is."""
    if (trim := _function("malloc_trim")) is not None:
        trim(0)


@cache
def _function(name: str) -> Callable[..., Any] | None:
    """A function of the C library; None where it has none of this name, as musl's."""
    import ctypes  # costs a start that does not need it nothing

    found: Callable[..., Any] | None = getattr(ctypes.CDLL(None), name, None)
    return found

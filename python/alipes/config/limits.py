"""Bounds on what a configuration may ask for; a load request can bring one, so they hold for outside input."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_INSTANCES", "MAX_THREADS"]

MAX_INSTANCES: Final = 1024
"""Most instances of a model: each holds a copy of it, and no machine has more cores to run them on."""

MAX_THREADS: Final = 1024
"""Most threads of an engine for one model: more than any machine has cores is a slip of the pen."""

"""The GPUs that a server may see."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Final

from alipes.errors import ServeError

__all__ = ["VISIBLE", "has_gpu", "visible_devices"]

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"

_log = logging.getLogger("alipes.serve")
_warned = False


def visible_devices(gpus: int | Sequence[int] | None, environment: Mapping[str, str]) -> str | None:
    """What `CUDA_VISIBLE_DEVICES` of the server says; `None` leaves it as it is.

    Args:
        gpus: Which GPUs. Where the environment names GPUs already, positions in that list, as CUDA itself counts;
            numbers of the machine otherwise.
        environment: The environment of this process.

    Raises:
        ServeError: If the environment names fewer GPUs than that, or a number is negative.
    """
    if gpus is None:
        return None
    wanted = [gpus] if isinstance(gpus, int) else list(gpus)
    named = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    highest = len(named) - 1 if named else None
    for gpu in wanted:
        if gpu < 0 or (highest is not None and gpu > highest):
            there = f"{VISIBLE}={environment[VISIBLE]} names {len(named)}" if named else "they are counted from 0"
            raise ServeError(f"there is no GPU {gpu}: {there}")
    return ",".join(named[gpu] if named else str(gpu) for gpu in wanted)


def has_gpu() -> bool:
    """Whether there is a GPU that this process may use, of the kind that servers use."""
    from alipes import _core  # loaded when a server is, so that the import of a client stays quick

    return bool(_core.gpus())


def say_without_gpu(gpus: object) -> None:
    """Says once in this process that there is no GPU and the CPU is used."""
    global _warned  # noqa: PLW0603
    if _warned or gpus is None or (isinstance(gpus, Sequence) and not gpus) or has_gpu():
        return
    _warned = True
    _log.warning("gpus=%s asks for a GPU and this machine has none: models run on the CPU (pid %d)", gpus, os.getpid())

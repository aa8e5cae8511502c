"""The GPUs that a server may see."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
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


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether this machine has a GPU of the kind that servers use."""
    return any((devices / name).exists() for name in ("nvidia0", "nvidiactl", "dxg"))


def say_without_gpu(gpus: object) -> None:
    """Says once in this process that there is no GPU and the CPU is used."""
    global _warned  # noqa: PLW0603
    if _warned or gpus is None or (isinstance(gpus, Sequence) and not gpus) or has_gpu():
        return
    _warned = True
    _log.warning("gpus=%s asks for a GPU and this machine has none: models run on the CPU (pid %d)", gpus, os.getpid())

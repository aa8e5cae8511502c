"""How much memory this process may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["memory_limit_bytes"]

_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit_bytes(cgroups: tuple[Path, ...] = _CGROUPS) -> int:
    """The limit of the container, else the memory of the machine.

    Args:
        cgroups: Files that hold a container's limit, for both versions of control groups.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in cgroups:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # no such version here, or `max`
            continue
    return min(limits)

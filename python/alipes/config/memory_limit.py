"""How much memory this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["memory_limit_bytes"]

_FILES: Final = {2: "memory.max", 1: "memory.limit_in_bytes"}
"""The file with a control group's limit, by the version of control groups."""

_MOUNTS: Final = {2: ("sys/fs/cgroup", "sys/fs/cgroup/unified"), 1: ("sys/fs/cgroup/memory",)}
"""Where control groups are, by their version."""


def memory_limit_bytes(root: Path = Path("/")) -> int:
    """The lowest limit of the control groups that this process is in, however they are nested, or the machine's memory.

    Args:
        root: Where `proc` and `sys` are.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _limit_files(root):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # not there, or `max`
            continue
    return min(limits)


def _limit_files(root: Path) -> Iterator[Path]:
    for version, group in _groups(root):
        # A limit of a group above holds too. In a container without a namespace of its own for control groups the path
        # is the host's and not to be seen; what is mounted there is the container's own group.
        for mount in _MOUNTS[version]:
            yield from (root / mount / folder / _FILES[version] for folder in (group, *group.parents))


def _groups(root: Path) -> Iterator[tuple[int, PurePosixPath]]:
    """The groups of this process that may limit its memory, each with its version and its path."""
    # The roots too where the system does not say: the limit of a container stands there.
    yield from ((version, PurePosixPath()) for version in _FILES)
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        group = PurePosixPath(path.lstrip("/"))
        if ".." in group.parts:  # outside of this process's namespace
            continue
        if not controllers:
            yield 2, group
        elif "memory" in controllers.split(","):
            yield 1, group

"""A control group with a limit on memory, below the one that the tests run in."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import until

# By the version of control groups: where they are, and the file with the limit.
_PLACES = {2: ("/sys/fs/cgroup", "memory.max"), 1: ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")}


class MemoryGroup:
    """A control group for processes of a test."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder = folder
        self._file = file

    def limit(self, bytes_: int) -> None:
        """Sets the limit on the memory of its processes, which the system holds them to."""
        (self._folder / self._file).write_text(str(bytes_))

    @property
    def launcher(self) -> tuple[str, ...]:
        """What starts a command, its last arguments, in the group."""
        return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._folder / "cgroup.procs"))

    def remove(self) -> None:
        """Removes the group, once the last of its processes has ended."""
        until(lambda: not (self._folder / "cgroup.procs").read_text(), "processes are left in the group")
        self._folder.rmdir()


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup]:
    """A new group; skips the test where this user may make none."""
    for version, (mount, file) in _PLACES.items():
        folder = Path(mount) / _own_group(version).lstrip("/") / f"alipes-test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if not (folder / file).exists():  # this version does not hold memory here
            folder.rmdir()
            continue
        group = MemoryGroup(folder, file)
        group.limit(limit_bytes)
        try:
            yield group
        finally:
            group.remove()
        return
    pytest.skip("this user may make no control group with a limit on memory")


def _own_group(version: int) -> str:
    """The path of the tests' own group."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if (not controllers) if version == 2 else ("memory" in controllers.split(",")):
            return path
    return "/"

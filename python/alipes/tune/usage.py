"""What a server and its worker processes use: memory and processor time.

It reads `/proc` itself. psutil finds children by reading the state of every process of the machine, its swap counts a
page once for each process that shares it, and every installation would bring it for these few lines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Usage", "resident_bytes", "usage"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and all below it use.

    Attributes:
        memory_bytes: Resident memory; pages that several of them share count once.
        swap_bytes: What of it was swapped out.
        busy_s: Processor time so far.
        processes: How many there are.
    """

    memory_bytes: int
    swap_bytes: int
    busy_s: float
    processes: int


def usage(pid: int) -> Usage:
    """Looks; a process that ends meanwhile counts for nothing."""
    busy_s = {one: busy_s for one in _tree(pid) if (busy_s := _busy_s(one)) is not None}
    shares = [_fields(one, "smaps_rollup") for one in busy_s]
    memory = sum(fields.get("Pss", 0) for fields in shares)
    swap = sum(fields.get("SwapPss", fields.get("Swap", 0)) for fields in shares)
    return Usage(memory * 1024, swap * 1024, sum(busy_s.values()), len(busy_s))


def resident_bytes(pid: int) -> int:
    """Resident memory, quick to see: pages that processes share count in each."""
    total = 0
    for one in _tree(pid):
        with contextlib.suppress(OSError, IndexError):
            total += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return total


def _tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in (thread / "children").read_text(encoding="ascii").split():
                    yield from _tree(int(child))


def _fields(pid: int, file: str) -> dict[str, int]:
    """The fields of a file in KiB."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}


def _busy_s(pid: int) -> float | None:
    """Processor time so far; `None` of a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS

"""Whether a process still runs: its id may belong to another one by now, its id and its start may not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["GONE", "started_at"]

GONE: Final = -1


def started_at(pid: int) -> int:
    """When a process started, in the system's ticks since its boot; `GONE` if it has ended, waited for or not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return GONE
    fields = status.rpartition(")")[2].split()  # the name before it may hold anything
    return GONE if fields[0] in "ZX" else int(fields[19])

"""The memory of a process, and the most that it had."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

# Written to `clear_refs`, it makes the peak begin anew. Source: proc_pid_clear_refs(5).
_RESET_PEAK: Final = "5"


class MemoryGrowth:
    """How much more resident memory a process has had since than it had at the beginning."""

    def __init__(self, pid: int) -> None:
        """Begins now."""
        self._folder = Path("/proc") / str(pid)
        (self._folder / "clear_refs").write_text(_RESET_PEAK)
        self._before = self._bytes("VmRSS")

    def peak_bytes(self) -> int | None:
        """The peak, less what there was before; nothing where the process has ended."""
        try:
            return self._bytes("VmHWM") - self._before
        except (OSError, LookupError):
            return None

    def _bytes(self, field: str) -> int:
        found = re.search(rf"^{field}:\s*(\d+) kB$", (self._folder / "status").read_text(), re.MULTILINE)
        if found is None:  # a zombie has no memory
            raise LookupError(field)
        return int(found[1]) * 1024

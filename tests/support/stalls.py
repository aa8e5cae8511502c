"""How long this machine has kept threads waiting for a core: a test is not slow because others were busy beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_PRESSURE: Final = Path("/proc/pressure/cpu")
_STATISTICS: Final = Path("/proc/stat")
_STEAL: Final = 7  # field of the line `cpu` in `_STATISTICS`, behind its name, source: proc_stat(5)


def stalled_s() -> float:
    """Seconds since the machine started in which a thread waited for a core, or the host ran something else on ours.

    Zero where the system does not count it. A test that keeps more threads busy than there are cores waits for itself,
    which cannot be told apart.
    """
    return _waited_s() + _stolen_s()


def _waited_s() -> float:
    try:
        found = re.search(r"^some .*total=(\d+)", _PRESSURE.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return 0.0
    return int(found[1]) / 1e6 if found else 0.0


def _stolen_s() -> float:
    try:
        line = _STATISTICS.read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return 0.0
    ticks = int(line.split()[1 + _STEAL])
    return ticks / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)

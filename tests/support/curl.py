"""curl, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.waiting import TIMEOUT_S


def curl(*arguments: str | Path) -> bytes:
    """What curl prints, having succeeded. Skips the test where it is not installed."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("curl is not installed")
    command = [program, "-sS", "--max-time", str(TIMEOUT_S), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout

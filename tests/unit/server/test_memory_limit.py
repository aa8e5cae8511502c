"""The memory that a process may use is that of its container, and never more than the machine has."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from alipes.server.memory_limit import memory_limit_bytes


@pytest.mark.parametrize(
    ("text", "limit"), [("1048576\n", 1 << 20), ("max\n", None), ("9223372036854771712\n", None), (None, None)]
)
def test_memory_limit(tmp_path: Path, text: str | None, limit: int | None) -> None:
    file = tmp_path / "memory.max"
    if text is not None:
        file.write_text(text)
    assert memory_limit_bytes((file,)) == (limit or psutil.virtual_memory().total)

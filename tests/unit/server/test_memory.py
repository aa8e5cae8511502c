"""The calls into the C library; what they are good for is shown by the end-to-end tests."""

from __future__ import annotations

import subprocess
import sys

import pytest
from alipes.server import memory


def test_both_calls_are_understood_by_the_c_library() -> None:
    code = "from alipes.server.memory import bound_heaps, give_back; bound_heaps(); give_back()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_c_library_without_them_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_function", lambda name: None)
    memory.bound_heaps()
    memory.give_back()

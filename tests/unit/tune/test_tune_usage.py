"""What processes use, beside what psutil sees of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from alipes.tune.usage import resident_bytes, usage

# A process with two children, one of which has two itself; each has memory of its own, and all have worked.
TREE = """
import os, sys
memory = os.urandom(1 << 20) * 20
forked = os.fork() == 0 and os.fork() == 0
if not forked:
    os.fork()
mine = bytearray(memory)
sum(range(1_000_000))
os.write(1, b"x")
sys.stdin.read()
"""
PROCESSES = 5


@pytest.fixture
def tree() -> Iterator[psutil.Process]:
    """Processes that wait."""
    with subprocess.Popen([sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.read(PROCESSES) == b"x" * PROCESSES
        yield psutil.Process(first.pid)


def test_a_tree_of_processes_is_seen_as_psutil_sees_it(tree: psutil.Process) -> None:
    together = [tree, *tree.children(recursive=True)]
    seen = usage(tree.pid)
    assert seen.processes == len(together) == PROCESSES
    assert seen.memory_bytes == pytest.approx(sum(one.memory_full_info().pss for one in together), rel=0.05)
    times = [one.cpu_times() for one in together]
    assert seen.busy_s == pytest.approx(sum(one.user + one.system for one in times), abs=0.05)
    assert resident_bytes(tree.pid) == pytest.approx(sum(one.memory_info().rss for one in together), rel=0.05)
    assert seen.memory_bytes < resident_bytes(tree.pid), "shared pages count once"


def test_processes_that_are_gone_count_for_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    seen = usage(ended.pid)
    assert (seen.memory_bytes, seen.swap_bytes, seen.busy_s, seen.processes) == (0, 0, 0, 0)
    assert resident_bytes(ended.pid) == 0

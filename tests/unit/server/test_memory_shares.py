"""What the data plane may take follows the memory that there is, unless the operator says how much."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.server import memory_shares
from alipes.server.memory_shares import MemoryShares, MemoryWatch
from support.waiting import until

TIMEOUT_S = 30


class Memory:
    """The memory that there is."""

    bytes = 4000


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    made = Memory()
    monkeypatch.setattr(memory_shares, "memory_limit_bytes", lambda: made.bytes)
    monkeypatch.setattr(memory_shares, "INTERVAL_S", 0.01)
    return made


@pytest.mark.usefixtures("memory")
def test_requests_and_connections_take_a_quarter_each(repository: Path) -> None:
    assert MemoryShares.now(parse_flags([str(repository)], {})) == (1000, 1000)
    assert MemoryShares.now(parse_flags([str(repository), "--max-inflight-bytes=77"], {})) == (77, 1000)


def test_a_change_is_passed_on_once(repository: Path, memory: Memory) -> None:
    passed: list[tuple[int, int]] = []
    watch = MemoryWatch(parse_flags([str(repository)], {}), lambda *shares: passed.append(shares))
    watch.start()
    memory.bytes = 2000
    until(lambda: passed)
    memory.bytes = 8000
    until(lambda: len(passed) > 1)
    assert watch.stop(TIMEOUT_S)
    watch.look()
    assert passed == [(500, 500), (2000, 2000)]

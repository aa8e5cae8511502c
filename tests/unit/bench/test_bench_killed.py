"""The outage ends with the first answer of another worker, and what it cost is counted by its kind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from support.fake_http import fake_http

from bench.fleet import Fleet
from bench.rows import killed
from bench.rows.killed import KilledRequestsRow, KilledRow
from bench.servers.endpoint import Endpoint

VICTIM = 4_000_000
NEXT = 4_000_001
LOAD_S = 0.01
OUTAGE_S = 0.05


@dataclass
class _Worker:
    """Answers its process id; once killed, fails two requests, leaves one alone, and comes back after a while."""

    pid: int = VICTIM
    killed_s: float = float("inf")
    fates: list[tuple[int, list[float]] | None] = field(default_factory=lambda: [(500, []), None, (500, [])])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def kill(self, pid: int, number: signal.Signals) -> None:
        assert (pid, number) == (VICTIM, signal.SIGKILL)
        self.killed_s = time.monotonic()

    def answer(self) -> tuple[int, list[float]] | None:
        with self.lock:  # every connection asks from a thread of its own
            if time.monotonic() < self.killed_s:
                return 200, [VICTIM, LOAD_S]
            if self.fates:
                return self.fates.pop()
        time.sleep(max(0.0, self.killed_s + OUTAGE_S - time.monotonic()))
        return 200, [NEXT, LOAD_S]


class _NoProcess:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    worker = _Worker()
    monkeypatch.setattr(killed.os, "kill", worker.kill)
    monkeypatch.setattr(killed, "repository", lambda model: None)
    with fake_http(worker.answer) as port:
        monkeypatch.setattr(killed.alipes, "start", lambda repository, name: Endpoint(_NoProcess(), port))  # type: ignore[arg-type]
        yield


def test_the_recovery_is_the_outage_without_the_model_s_own_load() -> None:
    (cell,) = KilledRow().cells(Fleet(frozenset()))
    sample = cell.measure(0.1)
    assert sample.detail["outage_s"] >= OUTAGE_S  # type: ignore[operator]
    assert sample.value == pytest.approx(sample.detail["outage_s"] - LOAD_S, abs=1e-6)  # type: ignore[operator]


def test_failed_and_lost_requests_are_counted() -> None:
    failed, lost = KilledRequestsRow().cells(Fleet(frozenset()))
    sample = failed.measure(0.1)
    assert sample.value == 2
    assert sample.detail["failed"] == ["no", "no"]
    assert lost.measure(0.1).value == 1

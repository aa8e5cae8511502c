"""The timer loop runs while another load is under way, and all of them have the same rate."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.fleet import Fleet
from bench.load import timer
from bench.load.tool import LoadFailed, Measurement
from bench.rows import lateness
from bench.rows.lateness import ALONE, BESIDE, lateness_rows
from bench.rows.row import Row
from bench.rows.testers import OWN
from bench.servers.endpoint import Endpoint


@dataclass
class _Machine:
    """A server and what loads it; the load ends when the timer loop has."""

    answered: int = 7
    rates: list[float] = field(default_factory=list)
    is_loaded: threading.Event = field(default_factory=threading.Event)
    seen: list[bool] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def pace(self, port: int, request: object, rate: float, seconds: float, wire: str) -> dict[str, float]:
        self.rates.append(rate)
        self.is_loaded.set()
        self.answered += 1
        assert seconds < 2 or self.over.wait(10)
        self.is_loaded.clear()
        return {"rate": rate, "late_p99_us": 30.0}

    def late(self, rate: float, seconds: float) -> dict[str, float]:
        self.rates.append(rate)
        self.seen.append(self.is_loaded.is_set())
        self.over.set()
        return {"rate": rate, "late_p99_us": 20.0}

    def get_json(self, port: int, path: str) -> Any:
        return {"model_stats": [{"inference_stats": {"success": {"count": self.answered}}}]}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> _Machine:
    found = _Machine()
    closed = Measurement(2001, 2.0, 1.0, 1.0), 1.0
    monkeypatch.setattr(lateness.own, "post", lambda *what: closed)
    monkeypatch.setattr(lateness.own, "pace", found.pace)
    monkeypatch.setattr(lateness.timer, "late", found.late)
    monkeypatch.setattr(lateness.probe, "get_json", found.get_json)
    monkeypatch.setattr(Fleet, "endpoint", lambda fleet, server, piece: Endpoint(None))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("row", lateness_rows(), ids=lambda row: row.facts.name)
def test_all_have_half_of_the_rate_of_a_closed_loop(machine: _Machine, row: Row) -> None:
    engine, beside, alone = row.cells(Fleet(frozenset()))
    assert [cell.label for cell in (engine, beside, alone)] == [OWN, BESIDE, ALONE]
    assert [cell.measure(1.5).value for cell in (engine, beside, alone)] == [30.0, 20.0, 20.0]
    assert machine.seen == [True, False]
    assert set(machine.rates) == {500}
    named = {name for target in row.facts.targets for name in (target.of, target.against)}
    assert named == {OWN, BESIDE, ALONE}


def test_a_load_that_fails_ends_the_measurement(machine: _Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*what: object) -> dict[str, float]:
        raise LoadFailed("refused")

    monkeypatch.setattr(lateness.own, "pace", fails)
    _, beside, _ = lateness_rows()[0].cells(Fleet(frozenset()))
    with pytest.raises(LoadFailed, match="refused"):
        beside.measure(1.5)


def test_a_timer_loop_that_is_not_compiled_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(timer, "compiled", lambda program: tmp_path / program)
    with pytest.raises(LoadFailed, match="timer-floor does not exist: compile the floors first"):
        timer.late(100.0, 0.1)


def test_what_the_timer_loop_prints_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "timer-floor"
    program.write_text('#!/bin/sh\necho "{\\"rate\\": $1, \\"late_p99_us\\": $2}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(timer, "compiled", lambda name: tmp_path / name)
    assert timer.late(100.0, 0.25) == {"rate": 100.0, "late_p99_us": 250.0}

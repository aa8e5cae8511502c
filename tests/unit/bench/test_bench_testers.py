"""Each tester loads the same server over the same protocol, in turn."""

from __future__ import annotations

from typing import Any

import pytest

from bench.fleet import Fleet
from bench.load.tool import Measurement
from bench.rows import testers
from bench.rows.row import CPU_US
from bench.rows.testers import H2LOAD, OWN, WRK
from bench.servers.endpoint import Endpoint

MEASURED = Measurement(2000, 2.0, 1.0, 1.0)


def test_two_testers_load_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Any]] = []

    def own(port: int, piece: object, streams: object, seconds: float, wire: str) -> tuple[Measurement, float]:
        seen.append((OWN, (port, streams, seconds, wire)))
        return MEASURED, 3.0

    def h2load(port: int, piece: object, streams: object, seconds: float, answer: int, **_: object) -> Measurement:
        seen.append((H2LOAD, (port, streams, seconds, answer)))
        return MEASURED

    def wrk(port: int, piece: object, connections: int, seconds: float) -> Measurement:
        seen.append((WRK, (port, connections, seconds)))
        return MEASURED

    for module, post in ((testers.own, own), (testers.h2load, h2load), (testers.wrk, wrk)):
        monkeypatch.setattr(module, "post", post)
    endpoint = Endpoint(None, http_port=1, grpc_port=2)  # type: ignore[arg-type]
    monkeypatch.setattr(Fleet, "endpoint", lambda *_: endpoint)
    monkeypatch.setattr(Fleet, "answer_bytes", lambda *_: 99)
    for row in testers.tester_rows():
        cells = row.cells(Fleet(frozenset()))
        named = {name for target in row.facts.targets for name in (target.of, target.against)}
        assert {cell.label for cell in cells} == named
        assert [cell.measure(1.5).value for cell in cells] == [1000.0, 1000.0]
        assert cells[0].measure(1.5).detail[CPU_US] == 3.0
    http, grpc = testers.STREAMS.values()
    assert seen[:2] == [(OWN, (1, http, 1.5, "http")), (WRK, (1, http.connections, 1.5))]
    assert seen[3:5] == [(OWN, (2, grpc, 1.5, "grpc")), (H2LOAD, (2, grpc, 1.5, 99))]


def test_without_the_server_there_is_nothing_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "endpoint", lambda *_: None)
    assert [row.cells(Fleet(frozenset())) for row in testers.tester_rows()] == [[], []]

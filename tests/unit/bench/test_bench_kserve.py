"""What KServe's users serve is measured beside KServe's own server, with each number of its processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.document import Document
from bench.fleet import ALIPES, Fleet
from bench.rows import kserve
from bench.rows.kserve import PEER, PROTOCOLS, kserve_rows, label, pair_label, several_workers
from bench.servers.endpoint import Endpoint

ENDPOINT = Endpoint(None, http_port=1)  # type: ignore[arg-type]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was started, instead of it."""
    seen: list[tuple[str, Any]] = []

    def noting(kind: str) -> Any:
        def start(*arguments: Any, **_: Any) -> Endpoint:
            seen.append((kind, arguments))
            return ENDPOINT

        return start

    for kind in ("start_sdk", "start_script", "start_store", "start_pair", "start_sdk_pair"):
        monkeypatch.setattr(kserve.kserve, kind, noting(kind))
    monkeypatch.setattr(kserve, "written_by", lambda *_, **__: Path("models"))
    monkeypatch.setattr(kserve, "python_with", lambda *_: Path("python"))
    monkeypatch.setattr(Document, "check", lambda *_: None)
    monkeypatch.setattr(Fleet, "of_row", lambda _, endpoint: endpoint)
    monkeypatch.setattr(Fleet, "peer_of_row", lambda _, peer, environment, start: start(Path(environment)))
    return seen


@pytest.mark.parametrize("row", kserve_rows(), ids=lambda row: row.facts.name)
def test_targets_name_contenders_of_their_row(row: Any, started: list[tuple[str, Any]]) -> None:
    labels = [cell.label for cell in row.cells(Fleet(frozenset({PEER})))]
    is_pair = row.facts.name.startswith("kserve_pair")
    peers = map(pair_label, PROTOCOLS) if is_pair else map(label, several_workers())
    assert labels == [ALIPES, *peers]
    assert {name for target in row.facts.targets for name in (target.of, target.against)} <= set(labels)
    assert len(started) == len(labels)


def test_an_answer_of_each_protocol_is_read() -> None:
    v1, v2, double, chain = (row.document for row in kserve_rows() if hasattr(row, "document"))
    v1.check_body(b'{"predictions": [1, 1]}')
    v2.check_body(json.dumps({"outputs": [{"name": "y", "shape": [2], "datatype": "INT64", "data": [1, 1]}]}).encode())
    double.check_body(b'{"predictions": [2, 4, 6, 8]}')
    chain.check_body(b'{"predictions": [20, 30, 40, 50]}')


def test_a_classifier_without_its_library_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kserve, "python_with", lambda *_: None)
    fleet = Fleet(frozenset())
    assert kserve_rows()[0].cells(fleet) == []
    assert "extra sklearn" in fleet.skipped[kserve.IRIS]

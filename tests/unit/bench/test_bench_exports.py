"""Exports are measured where there is PyTorch, with and without alipes, and left out with a reason elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.fleet import Fleet
from bench.rows import exports
from bench.rows.exports import ExportRow, export_rows

ROWS = [row for row in export_rows() if isinstance(row, ExportRow)]


def test_exports_are_left_out_with_a_reason_where_there_is_no_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "torch_python", lambda: None)
    fleet = Fleet(frozenset())
    assert [row.cells(fleet) for row in ROWS] == [[]] * len(ROWS)
    assert "extra torch" in fleet.skipped["exports"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.facts.name)
def test_targets_of_exports_name_contenders_of_their_row(row: ExportRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "torch_python", lambda: Path(sys.executable))
    labels = {cell.label for cell in row.cells(Fleet(frozenset()))}
    assert {name for target in row.facts.targets for name in (target.of, target.against)} == labels

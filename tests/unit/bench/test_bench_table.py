"""The table holds each row once, and every target names contenders that its row has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import _choose, _peers
from bench.fleet import Fleet
from bench.models.streaming import ASKED
from bench.rows.documents import DocumentRow
from bench.rows.load import LoadRow
from bench.rows.streaming import StreamRow
from bench.rows.table import rows
from bench.servers import peers
from bench.servers.programs import COMMANDS, PEERS

ROWS = rows(soak_requests=1000)


def test_names_are_unique() -> None:
    names = [row.facts.name for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row, LoadRow)], ids=lambda row: row.facts.name)
def test_targets_name_contenders_of_their_row(row: LoadRow) -> None:
    labels = {contender.label for contender in row.contenders}
    named = {name for target in row.facts.targets for name in (target.of, target.against) if name is not None}
    assert named <= labels
    assert {contender.server for contender in row.contenders} <= {
        "alipes",
        "alipes_cache",
        "alipes_tls",
        "floor",
        *peers.ALL,
    }


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row, StreamRow)], ids=lambda row: row.facts.name)
def test_targets_of_streams_name_models_of_their_row(row: StreamRow) -> None:
    labels = {contender.label for contender in row.contenders}
    assert {name for target in row.facts.targets for name in (target.of, target.against)} <= labels
    assert {contender.model for contender in row.contenders} <= set(ASKED)


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row, DocumentRow)], ids=lambda row: row.facts.name)
def test_targets_of_documents_name_contenders_of_their_row(row: DocumentRow) -> None:
    labels = {contender.label for contender in row.contenders}
    assert {name for target in row.facts.targets for name in (target.of, target.against)} == labels


def test_a_program_of_a_peer_that_is_not_wanted_is_not_started() -> None:
    with Fleet(frozenset()) as fleet:
        (row,) = [row for row in ROWS if row.facts.name == "function"]
        assert isinstance(row, DocumentRow)
        theirs = [contender for contender in row.contenders if contender.label != "alipes"]
        assert [contender.start(fleet, contender.document) for contender in theirs] == [None] * len(theirs)
        assert fleet.skipped == {}


def test_the_first_answer_is_compared_with_that_of_a_peer_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = [row for row in ROWS if row.facts.name == "app_start"]
    with Fleet(frozenset()) as fleet:
        assert [cell.label for cell in row.cells(fleet)] == ["alipes", "alipes, --reload"]
        monkeypatch.setattr(fleet, "environment", lambda peer, name: PEERS / name)
        labels = {cell.label for cell in row.cells(fleet)}
    assert {name for target in row.facts.targets for name in (target.of, target.against)} == labels


def test_every_program_is_a_file_of_a_peer_that_there_is() -> None:
    for peer in COMMANDS:
        assert peer in peers.ALL
        assert (PEERS / peer / "requirements.txt").is_file()


def test_rows_are_chosen_by_name() -> None:
    assert [row.facts.name for row in _choose(ROWS, "grpc,conv")] == ["grpc", "conv"]
    assert _choose(ROWS, "all") == ROWS
    with pytest.raises(SystemExit, match="no row 'gprc'; there are: http_json"):
        _choose(ROWS, "gprc")


def test_peers_are_chosen_by_name() -> None:
    assert _peers("none") == frozenset()
    assert _peers("all") == {"bentoml", "fastapi", "kserve", "litserve", "mlserver", "mosec", "torchserve", "triton"}
    with pytest.raises(SystemExit, match="no peer 'bento'"):
        _peers("bento")


def test_a_peer_that_is_not_wanted_is_not_started() -> None:
    with Fleet(frozenset()) as fleet:
        row = next(row for row in ROWS if isinstance(row, LoadRow))
        contender = next(one for one in row.contenders if one.server == "mosec")
        assert fleet.endpoint(contender.server, contender.work) is None


def test_the_profile_names_rows_that_there_are() -> None:
    script = Path(__file__).parents[3] / "tools" / "profile"
    named = ",".join(re.findall(r"^rows\+?=,?(\S+)$", script.read_text(encoding="utf-8"), re.MULTILINE)).split(",")
    assert set(named) <= {row.facts.name for row in ROWS}
    assert {"http_json", "grpc", "identity", "pictures"} <= set(named)

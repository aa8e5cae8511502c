from __future__ import annotations

import os
from pathlib import Path

import pytest
from alipes.backends import proofs
from alipes.backends.proofs import known_proof, proof_key, proof_of
from alipes.row_proof import RowProof

PROVED, REFUTED = RowProof("proved"), RowProof("refuted", "output 'Y' has shape [] for 2 rows")


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"graph")
    return folder


@pytest.mark.parametrize("proof", [PROVED, REFUTED])
def test_what_was_found_out_is_not_found_out_again(version: Path, proof: RowProof) -> None:
    key = proof_key(version, ["library"])
    assert proof_of(key, lambda: proof) == proof
    assert proof_of(key, lambda: pytest.fail("it is kept")) == proof


def test_what_could_not_be_tried_is_tried_again(version: Path) -> None:
    key = proof_key(version, [])
    assert proof_of(key, lambda: RowProof("untried", "no kernel")).outcome == "untried"
    assert proof_of(key, lambda: PROVED) == PROVED


def test_a_key_is_made_of_what_the_files_hold(version: Path, tmp_path: Path) -> None:
    key = proof_key(version, ["a"])
    assert key != proof_key(version, ["b"])
    os.utime(version / "model.onnx", ns=(1, 1))
    moved = version.rename(tmp_path / "elsewhere")
    assert proof_key(moved, ["a"]) == key
    (moved / "weights.bin").write_bytes(b"1")
    other = proof_key(moved, ["a"])
    (moved / "weights.bin").write_bytes(b"2")
    assert len({key, other, proof_key(moved, ["a"])}) == 3


def test_no_proof_is_cached_of_too_many_files(version: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_FILES", 1)
    (version / "other").write_bytes(b"")
    key = proof_key(version, [])
    assert key == ""
    assert proof_of(key, lambda: PROVED) == PROVED
    assert known_proof(key) is None


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_PROOFS", 2)
    for number, key in enumerate("abc"):
        proof_of(key, lambda: PROVED)
        kept = next(Path(str(proofs.private_folder("proofs"))).glob(key))
        os.utime(kept, ns=(number, number))
    assert [known_proof(key) for key in "abc"] == [None, PROVED, PROVED]


@pytest.mark.parametrize("text", ["", "[]", '{"outcome": "proved", "more": 1}'])
def test_a_damaged_one_is_as_none(version: Path, text: str) -> None:
    key = proof_key(version, [])
    proof_of(key, lambda: PROVED)
    (proofs.private_folder("proofs") / key).write_text(text)
    assert proof_of(key, lambda: REFUTED) == REFUTED


def test_a_folder_that_others_may_write_to_is_not_used(version: Path) -> None:
    key = proof_key(version, [])
    proof_of(key, lambda: PROVED)
    proofs.private_folder("proofs").chmod(0o777)
    assert known_proof(key) is None
    assert proof_of(key, lambda: REFUTED) == REFUTED

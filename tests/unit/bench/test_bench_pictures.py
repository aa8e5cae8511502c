"""The rows on pictures measure what they say, and notice a server that says something else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bench.fleet import Fleet
from bench.models import lab
from bench.rows import pictures
from bench.rows.pictures import DecodeRow, LabRow, NetworkRow, pictures_rows
from bench.rows.row import Sample
from bench.work import WrongAnswer


def test_targets_name_contenders_of_their_row() -> None:
    labels = {"pictures": set(pictures.VARIANTS.values())}
    for row in pictures_rows():
        named = {name for target in row.facts.targets for name in (target.of, target.against)}
        assert named <= labels.get(row.facts.name, {"alipes", pictures.RAW, pictures.PILLOW})


def test_the_picture_has_about_thirty_kilobytes() -> None:
    assert 27_000 < len(lab.picture()) < 33_000
    assert lab.pillow(lab.picture()).shape == (lab.SIDE, lab.SIDE, 3)


def test_without_fastapi_the_row_is_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "lab_python", lambda: None)
    fleet = Fleet(frozenset())
    assert LabRow().cells(fleet) == []
    assert "FastAPI" in fleet.skipped["pictures"]


def test_variants_that_were_not_measured_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(row: LabRow, _python: Path, _seconds: float) -> None:
        row._found = {pictures.NATIVE: Sample(1.0, {})}

    monkeypatch.setattr(pictures, "lab_python", lambda: Path("python"))
    monkeypatch.setattr(LabRow, "_run", run)
    fleet = Fleet(frozenset())
    assert [cell.label for cell in LabRow().cells(fleet)] == [pictures.NATIVE]
    for label in pictures.VARIANTS.values():
        assert (label in fleet.skipped["pictures"]) == (label != pictures.NATIVE)


@pytest.mark.skipif(
    not (Path(sys.executable).parent / "alipes").exists(), reason="the bench starts the installed command"
)
@pytest.mark.slow("a server starts, and each row is measured")
def test_the_rows_of_one_server_measure_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "repository", lambda: tmp_path / "lab")
    monkeypatch.setattr(lab, "LAYERS", 0)
    lab.write(tmp_path / "lab")
    with Fleet(frozenset()) as fleet:
        for row in (NetworkRow(), DecodeRow()):
            cells = row.cells(fleet)
            samples = {cell.label: cell.measure(0.3) for cell in cells}
            assert len(samples) == 2
            assert all(sample.value > 0 for sample in samples.values())
        endpoint = fleet.alipes_on("lab", tmp_path / "lab")
        with pytest.raises(WrongAnswer, match="Bread"):
            pictures._check(endpoint, lab.asked("food", "label", "Bread"))


def test_the_network_says_the_same_with_layers(tmp_path: Path) -> None:
    import onnxruntime

    file = lab.network_file(lab.write(tmp_path / "lab"))
    pixels = np.zeros((2, 3, lab.SIDE, lab.SIDE), np.float32)
    (scores,) = onnxruntime.InferenceSession(file).run(None, {"input": pixels})
    weight_and_bias = lab._module("make_weights").weights()
    np.testing.assert_allclose(scores, np.tile(weight_and_bias[1], (2, 1)), atol=1e-3)

"""LightGBM's files, opened as a worker opens them: the answers are those of LightGBM itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.signature import Port
from alipes.worker.loading import LoadError
from support.forests import COLUMNS, ROWS, opening, tensor, train_lightgbm

lightgbm: Any = pytest.importorskip("lightgbm", reason="it is served: pip install 'alipes[lightgbm]'")
from alipes.worker.frameworks.lightgbm import open_model  # noqa: E402

pytestmark = pytest.mark.extra("trees")

KINDS = {
    "number": ("regression", "number"),
    "two": ("binary", "two"),
    "entropy": ("cross_entropy", "two"),
    "three": ("multiclass", "three"),
    "ova": ("multiclassova", "three"),
}
ALL = [tensor(name, 1) for name in ("predict", "margin", "predict_proba", "contributions")]
ALL += [tensor("class", 1, kind="INT32")]


@pytest.fixture(scope="module")
def boosters() -> dict[str, Any]:
    return {name: train_lightgbm(*kind) for name, kind in KINDS.items()}


def content(booster: Any) -> bytes:
    return str(booster.model_to_string()).encode()


@pytest.mark.parametrize("name", KINDS)
def test_predictions_are_lightgbms_own(boosters: dict[str, Any], tmp_path: Path, name: str) -> None:
    model = open_model(opening(tmp_path / "model.txt", content(boosters[name])))
    for rows in (1, 3, 400):
        expected = boosters[name].predict(ROWS[:rows]).reshape(rows, -1)
        np.testing.assert_array_equal(model.run({"input": ROWS[:rows]})["predict"], expected)


def test_the_file_says_what_goes_in_and_out(boosters: dict[str, Any], tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "model.txt", content(boosters["three"]))).signature
    assert found is not None
    assert found.inputs == (Port("input", "FP32", (-1, COLUMNS)),)
    assert found.outputs == (Port("predict", "FP64", (-1, 3)),)


def test_outputs_of_two_classes(boosters: dict[str, Any], tmp_path: Path) -> None:
    booster = boosters["two"]
    given = opening(tmp_path / "m.txt", content(booster), {"threshold": "0.3"}, output=ALL)
    found, chance = open_model(given).run({"input": ROWS}), booster.predict(ROWS)
    np.testing.assert_array_equal(found["margin"][:, 0], booster.predict(ROWS, raw_score=True))
    np.testing.assert_array_equal(found["predict_proba"], np.stack((1 - chance, chance), 1))
    np.testing.assert_array_equal(found["class"][:, 0], chance > 0.3)
    np.testing.assert_array_equal(found["contributions"], booster.predict(ROWS, pred_contrib=True))


@pytest.mark.parametrize("name", ["three", "ova"])
def test_outputs_of_three_classes(boosters: dict[str, Any], tmp_path: Path, name: str) -> None:
    booster = boosters[name]
    found = open_model(opening(tmp_path / "m.txt", content(booster), output=ALL)).run({"input": ROWS})
    chances = booster.predict(ROWS)
    np.testing.assert_array_equal(found["predict_proba"], chances)
    np.testing.assert_array_equal(found["class"][:, 0], chances.argmax(1))
    np.testing.assert_array_equal(found["margin"], booster.predict(ROWS, raw_score=True))
    np.testing.assert_array_equal(
        found["contributions"], booster.predict(ROWS, pred_contrib=True).reshape(len(ROWS), 3, COLUMNS + 1)
    )


def test_a_model_of_numbers_offers_no_classes(boosters: dict[str, Any], tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "m.txt", content(boosters["entropy"]), output=ALL)).signature
    assert found is not None
    assert [port.name for port in found.outputs] == ["predict", "margin", "contributions"]


def refusal(file: Path, document: bytes) -> str:
    with pytest.raises(LoadError) as caught:
        open_model(opening(file, document))
    return str(caught.value)


@pytest.mark.parametrize("document", [b"", b"a note", b"\x80\x04 a pickle"])
def test_what_is_no_model_is_refused_with_advice(tmp_path: Path, document: bytes) -> None:
    assert refusal(tmp_path / "model.txt", document) == (
        "model 'm' cannot be loaded from 'model.txt': it is no model of LightGBM's: write one with "
        "Booster.save_model('model.txt')"
    )


def test_half_a_file_is_refused(boosters: dict[str, Any], tmp_path: Path) -> None:
    document = content(boosters["two"])
    assert "it ends in the middle of a tree" in refusal(tmp_path / "model.txt", document[: len(document) // 2])


def test_a_damaged_file_is_refused(boosters: dict[str, Any], tmp_path: Path) -> None:
    document = content(boosters["two"]).replace(b"max_feature_idx", b"max_feature_odd")
    assert "the framework cannot read it (LightGBMError" in refusal(tmp_path / "model.txt", document)


def test_a_file_of_a_newer_format_is_refused(boosters: dict[str, Any], tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.txt", content(boosters["two"]).replace(b"version=v4", b"version=v5", 1))
    assert (
        f"its format is v5, and the installed LightGBM {lightgbm.__version__} reads v4: install a newer one" in refused
    )

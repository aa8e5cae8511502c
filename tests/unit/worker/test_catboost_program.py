"""CatBoost's files, opened as a worker opens them: the answers are those of CatBoost itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.signature import Port
from alipes.worker.loading import LoadError
from support.forests import COLUMNS, ROWS, labels, opening, tensor

catboost: Any = pytest.importorskip("catboost", reason="it is served: pip install 'alipes[catboost]'")
from alipes.worker.frameworks.catboost import open_model  # noqa: E402

pytestmark = pytest.mark.extra("trees")

QUIET = {"iterations": 20, "verbose": False, "allow_writing_files": False, "thread_count": 1}
WORDS = np.where(labels("two") > 0, "yes", "no")
COLOURS = np.array(["red", "green", "blue"])[labels("three")]


def trained(kind: str) -> Any:
    """A model that was fitted on the rows."""
    if kind == "words":
        return catboost.CatBoostClassifier(**QUIET).fit(ROWS, WORDS)
    if kind == "three":
        return catboost.CatBoostClassifier(loss_function="MultiClass", **QUIET).fit(ROWS, labels("three"))
    if kind == "count":
        return catboost.CatBoostRegressor(loss_function="Poisson", **QUIET).fit(ROWS, labels("two"))
    if kind == "uncertain":
        return catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", **QUIET).fit(ROWS, labels("number"))
    return catboost.CatBoostRegressor(**QUIET).fit(ROWS, labels("number"))


def content(folder: Path, model: Any) -> bytes:
    model.save_model(str(folder / "saved.cbm"))
    return (folder / "saved.cbm").read_bytes()


@pytest.mark.parametrize("kind", ["number", "count", "uncertain", "three", "words"])
def test_predictions_are_catboosts_own(tmp_path: Path, kind: str) -> None:
    source = trained(kind)
    model = open_model(opening(tmp_path / "model.cbm", content(tmp_path, source)))
    for rows in (1, 3, 400):
        found = model.run({"input": ROWS[:rows]})
        np.testing.assert_array_equal(found["predict"], source.predict(ROWS[:rows]).reshape(rows, -1))
        if "predict_proba" in found:
            np.testing.assert_array_equal(found["predict_proba"], source.predict_proba(ROWS[:rows]))
    assert ("predict_proba" in found) == (kind in ("three", "words"))


def test_the_file_says_what_goes_in_and_out(tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "model.cbm", content(tmp_path, trained("words")))).signature
    assert found is not None
    assert found.inputs == (Port("input", "FP32", (-1, COLUMNS)),)
    assert found.outputs == (Port("predict", "BYTES", (-1, 1)), Port("predict_proba", "FP64", (-1, 2)))


def test_further_outputs_where_they_are_listed(tmp_path: Path) -> None:
    source = trained("words")
    listed = [tensor("raw", 1, kind="FP64"), tensor("predict_log_proba", 2, kind="FP64")]
    found = open_model(opening(tmp_path / "m.cbm", content(tmp_path, source), output=listed)).run({"input": ROWS})
    assert list(found) == ["raw", "predict_log_proba"]
    np.testing.assert_array_equal(found["raw"][:, 0], source.predict(ROWS, prediction_type="RawFormulaVal"))
    np.testing.assert_array_equal(found["predict_log_proba"], source.predict_log_proba(ROWS))


def test_categories_are_an_input_of_strings(tmp_path: Path) -> None:
    table = np.empty((len(ROWS), 3), object)
    table[:, 0], table[:, 1], table[:, 2] = ROWS[:, 0], COLOURS, ROWS[:, 1]
    source = catboost.CatBoostClassifier(cat_features=[1], **QUIET).fit(table, labels("two"))
    model = open_model(opening(tmp_path / "model.cbm", content(tmp_path, source)))
    assert model.signature is not None
    assert model.signature.inputs == (Port("input", "FP32", (-1, 2)), Port("categories", "BYTES", (-1, 1)))
    words = np.array([colour.encode() for colour in COLOURS], object).reshape(-1, 1)
    found = model.run({"input": ROWS[:, :2], "categories": words})
    np.testing.assert_array_equal(found["predict_proba"], source.predict_proba(table))


def refusal(file: Path, document: bytes, **more: Any) -> str:
    with pytest.raises(LoadError) as caught:
        open_model(opening(file, document, **more))
    return str(caught.value)


def test_an_output_that_is_no_method_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "m.cbm", content(tmp_path, trained("number")), output=[tensor("predict_proba", 2)])
    assert (
        "has output 'predict_proba', and outputs are named after the model's methods, which are: predict, raw"
        in refused
    )


@pytest.mark.parametrize("document", [b"", b"a note", b"\x80\x04 a pickle"])
def test_what_is_no_model_is_refused(tmp_path: Path, document: bytes) -> None:
    assert "cannot be loaded from 'model.cbm': the framework cannot read it" in refusal(
        tmp_path / "model.cbm", document
    )


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    document = content(tmp_path, trained("words"))
    assert "the framework cannot read it (CatBoostError" in refusal(tmp_path / "m.cbm", document[: len(document) // 2])


def test_texts_are_refused(tmp_path: Path) -> None:
    table = np.empty((len(ROWS), 2), object)
    table[:, 0], table[:, 1] = ROWS[:, 0], [f"a {colour} thing" for colour in COLOURS]
    source = catboost.CatBoostClassifier(text_features=[1], **QUIET).fit(table, labels("two"))
    refused = refusal(tmp_path / "m.cbm", content(tmp_path, source))
    assert "it takes texts or embeddings, which are not served" in refused

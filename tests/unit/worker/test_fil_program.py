"""Models of trees under the names and parameters of Triton's backend `fil`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.signature import Port
from alipes.worker.loading import LoadError
from support.forests import COLUMNS, ROWS, opening, tensor, train_lightgbm, train_xgboost

xgboost: Any = pytest.importorskip("xgboost", reason="it is served: pip install 'alipes[xgboost]'")
from alipes.worker.frameworks.fil import open_model  # noqa: E402

pytestmark = pytest.mark.extra("trees")

XGBOOST = {"model_type": "xgboost_ubj"}


@pytest.fixture(scope="module")
def boosters() -> dict[str, Any]:
    return {
        "number": train_xgboost("reg:squarederror", "number"),
        "two": train_xgboost("binary:logistic", "two"),
        "three": train_xgboost("multi:softprob", "three"),
    }


def answers(folder: Path, booster: Any, *dims: int, rows: np.ndarray = ROWS, **parameters: str) -> np.ndarray:
    """What `output__0` has for rows."""
    more = {"output": [tensor("output__0", *dims)]} if dims else {}
    given = opening(folder / "xgboost.ubj", bytes(booster.save_raw("ubj")), XGBOOST | parameters, **more)
    found = open_model(given)
    assert found.signature is not None
    assert found.signature.inputs == (Port("input__0", "FP32", (-1, COLUMNS)),)
    answer = found.run({"input__0": rows})["output__0"]
    assert found.signature.outputs == (Port("output__0", "FP32", (-1, answer.shape[1])),)
    return answer


def test_without_classes_the_prediction_is_the_answer(boosters: dict[str, Any], tmp_path: Path) -> None:
    matrix = xgboost.DMatrix(ROWS)
    for name in ("number", "two", "three"):
        expected = boosters[name].predict(matrix).reshape(len(ROWS), -1)
        np.testing.assert_array_equal(answers(tmp_path, boosters[name], output_class="false"), expected)


def test_output_class_gives_the_class(boosters: dict[str, Any], tmp_path: Path) -> None:
    two, three = (boosters[name].predict(xgboost.DMatrix(ROWS)) for name in ("two", "three"))
    found = answers(tmp_path, boosters["two"], output_class="true")
    np.testing.assert_array_equal(found[:, 0], two > 0.5)
    np.testing.assert_array_equal(answers(tmp_path, boosters["two"], is_classifier="true"), found)
    found = answers(tmp_path, boosters["two"], 1, output_class="true", threshold="0.8")
    np.testing.assert_array_equal(found[:, 0], two > 0.8)
    np.testing.assert_array_equal(answers(tmp_path, boosters["three"], output_class="true")[:, 0], three.argmax(1))


def test_predict_proba_gives_probabilities(boosters: dict[str, Any], tmp_path: Path) -> None:
    two, three = (boosters[name].predict(xgboost.DMatrix(ROWS)) for name in ("two", "three"))
    wanted = {"output_class": "true", "predict_proba": "true"}
    np.testing.assert_array_equal(answers(tmp_path, boosters["three"], **wanted), three)
    np.testing.assert_array_equal(answers(tmp_path, boosters["two"], 1, **wanted)[:, 0], two)
    np.testing.assert_array_equal(answers(tmp_path, boosters["two"], 2, **wanted), np.stack((1 - two, two), 1))


def test_shapley_values_come_where_they_are_listed(boosters: dict[str, Any], tmp_path: Path) -> None:
    listed = [tensor("output__0", 1), tensor("treeshap_output", COLUMNS + 1)]
    given = opening(tmp_path / "xgboost.ubj", bytes(boosters["two"].save_raw("ubj")), XGBOOST, output=listed)
    found = open_model(given).run({"input__0": ROWS})
    expected = boosters["two"].predict(xgboost.DMatrix(ROWS), pred_contribs=True)
    np.testing.assert_array_equal(found["treeshap_output"], expected)


def test_lightgbm_is_named_by_its_type(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    booster = train_lightgbm("binary", "two")
    parameters = {"model_type": "lightgbm", "output_class": "true"}
    given = opening(tmp_path / "model.txt", booster.model_to_string().encode(), parameters)
    np.testing.assert_array_equal(
        open_model(given).run({"input__0": ROWS})["output__0"][:, 0], booster.predict(ROWS) > 0.5
    )


@pytest.mark.parametrize("key", ["output_class", "predict_proba"])
def test_classes_of_a_model_of_numbers_are_refused(boosters: dict[str, Any], tmp_path: Path, key: str) -> None:
    with pytest.raises(LoadError, match=f"parameter {key} is true, but the model predicts numbers, not classes"):
        answers(tmp_path, boosters["number"], **{key: "true"})


def test_parameters_are_true_or_false(boosters: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="parameter output_class of model 'm' must be true or false, got 'maybe'"):
        answers(tmp_path, boosters["two"], output_class="maybe")


def test_the_legacy_binary_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"old binary format .* save it with save_model\('model\.ubj'\)"):
        open_model(opening(tmp_path / "xgboost.model", b"binf" + bytes(100), {"model_type": "xgboost"}))

"""XGBoost's files, opened as a worker opens them: the answers are those of XGBoost itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.signature import Port
from alipes.worker.loading import LoadError
from support.forests import COLUMNS, ROWS, opening, tensor, train_xgboost

xgboost: Any = pytest.importorskip("xgboost", reason="it is served: pip install 'alipes[xgboost]'")
from alipes.worker.frameworks.xgboost import open_model  # noqa: E402

pytestmark = pytest.mark.extra("trees")

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "number": ("reg:squarederror", "number", {}),
    "count": ("count:poisson", "two", {}),
    "two": ("binary:logistic", "two", {}),
    "raw": ("binary:logitraw", "two", {}),
    "hinge": ("binary:hinge", "two", {}),
    "three": ("multi:softprob", "three", {}),
    "softmax": ("multi:softmax", "three", {}),
    "dart": ("binary:logistic", "two", {"booster": "dart"}),
    "linear": ("reg:squarederror", "number", {"booster": "gblinear"}),
}
ALL = [tensor(name, 1) for name in ("predict", "margin", "predict_proba", "contributions")]
ALL += [tensor("class", 1, kind="INT64")]


@pytest.fixture(scope="module")
def boosters() -> dict[str, Any]:
    return {name: train_xgboost(objective, task, **more) for name, (objective, task, more) in KINDS.items()}


def content(booster: Any, kind: str = "ubj") -> bytes:
    return bytes(booster.save_raw(kind))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["ubj", "json"])
def test_predictions_are_xgboosts_own(boosters: dict[str, Any], tmp_path: Path, name: str, kind: str) -> None:
    model = open_model(opening(tmp_path / f"model.{kind}", content(boosters[name], kind)))
    for rows in (1, 400, 3):
        expected = boosters[name].predict(xgboost.DMatrix(ROWS[:rows]))
        found = model.run({"input": ROWS[:rows]})["predict"]
        # Of `dart`, XGBoost itself adds trees up in another order in place than from a `DMatrix`.
        np.testing.assert_allclose(found, expected.reshape(rows, -1), rtol=1e-6 if name == "dart" else 0)


def test_the_file_says_what_goes_in_and_out(boosters: dict[str, Any], tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "model.ubj", content(boosters["three"]))).signature
    assert found is not None
    assert found.inputs == (Port("input", "FP32", (-1, COLUMNS)),)
    assert found.outputs == (Port("predict", "FP32", (-1, 3)),)


def test_doubles_are_accepted_where_they_are_listed(boosters: dict[str, Any], tmp_path: Path) -> None:
    given = opening(tmp_path / "model.ubj", content(boosters["two"]), input=[tensor("input", COLUMNS, kind="FP64")])
    model = open_model(given)
    assert model.signature is not None and model.signature.inputs[0].datatype == "FP64"
    expected = boosters["two"].predict(xgboost.DMatrix(ROWS))
    np.testing.assert_array_equal(model.run({"input": ROWS.astype("f8")})["predict"][:, 0], expected)


def test_missing_values_are_missing(boosters: dict[str, Any], tmp_path: Path) -> None:
    rows = np.where(np.arange(COLUMNS) == 2, np.nan, ROWS[:3]).astype(np.float32)
    model = open_model(opening(tmp_path / "model.ubj", content(boosters["two"])))
    expected = boosters["two"].predict(xgboost.DMatrix(rows))
    np.testing.assert_array_equal(model.run({"input": rows})["predict"][:, 0], expected)


def test_rows_may_be_read_only_views(boosters: dict[str, Any], tmp_path: Path) -> None:
    rows = ROWS[5:9]
    rows.setflags(write=False)
    model = open_model(opening(tmp_path / "model.ubj", content(boosters["two"])))
    np.testing.assert_array_equal(
        model.run({"input": rows})["predict"][:, 0], boosters["two"].predict(xgboost.DMatrix(ROWS[5:9]))
    )


def test_rows_may_lie_anywhere_in_memory(boosters: dict[str, Any], tmp_path: Path) -> None:
    model = open_model(opening(tmp_path / "model.ubj", content(boosters["two"])))
    rows = np.asfortranarray(np.repeat(ROWS, 2, axis=0))[::2]
    expected = boosters["two"].predict(xgboost.DMatrix(ROWS))
    np.testing.assert_array_equal(model.run({"input": rows})["predict"][:, 0], expected)


def test_rows_of_another_width_are_refused_in_words(boosters: dict[str, Any], tmp_path: Path) -> None:
    model = open_model(opening(tmp_path / "model.ubj", content(boosters["two"])))
    with pytest.raises(ValueError, match=r"(?i)columns|features") as caught:
        model.run({"input": np.zeros((1, COLUMNS + 2), "f4")})
    assert "Stack trace" not in str(caught.value)


@pytest.mark.parametrize("name", ["two", "raw"])
def test_outputs_of_two_classes(boosters: dict[str, Any], tmp_path: Path, name: str) -> None:
    booster, matrix = boosters[name], xgboost.DMatrix(ROWS)
    found = open_model(opening(tmp_path / "m.ubj", content(booster), {"threshold": "0.3"}, output=ALL)).run(
        {"input": ROWS}
    )
    margin = booster.predict(matrix, output_margin=True)
    chance = 1 / (1 + np.exp(-margin))
    np.testing.assert_array_equal(found["margin"][:, 0], margin)
    np.testing.assert_allclose(found["predict_proba"], np.stack((1 - chance, chance), 1), atol=1e-6)
    np.testing.assert_array_equal(found["class"][:, 0], chance > 0.3)
    np.testing.assert_array_equal(found["contributions"], booster.predict(matrix, pred_contribs=True))


@pytest.mark.parametrize("name", ["three", "softmax"])
def test_outputs_of_three_classes(boosters: dict[str, Any], tmp_path: Path, name: str) -> None:
    matrix = xgboost.DMatrix(ROWS)
    found = open_model(opening(tmp_path / "m.ubj", content(boosters[name]), output=ALL)).run({"input": ROWS})
    chances = boosters["three"].predict(matrix)
    np.testing.assert_allclose(found["predict_proba"], chances, atol=1e-6)
    np.testing.assert_array_equal(found["class"][:, 0], chances.argmax(1))
    np.testing.assert_array_equal(found["margin"], boosters[name].predict(matrix, output_margin=True))
    np.testing.assert_array_equal(found["contributions"], boosters[name].predict(matrix, pred_contribs=True))


def test_only_what_is_listed_is_computed(boosters: dict[str, Any], tmp_path: Path) -> None:
    given = opening(tmp_path / "m.ubj", content(boosters["two"]), output=[tensor("class", 1, kind="INT64")])
    assert list(open_model(given).run({"input": ROWS})) == ["class"]


def test_a_model_of_numbers_offers_no_classes(boosters: dict[str, Any], tmp_path: Path) -> None:
    found = open_model(opening(tmp_path / "m.ubj", content(boosters["number"]), output=ALL)).signature
    assert found is not None
    assert [port.name for port in found.outputs] == ["predict", "margin", "contributions"]


def refusal(file: Path, document: bytes, parameters: dict[str, str] | None = None, **more: Any) -> str:
    with pytest.raises(LoadError) as caught:
        open_model(opening(file, document, parameters, **more))
    return str(caught.value)


def test_half_a_file_is_refused(boosters: dict[str, Any], tmp_path: Path) -> None:
    text, binary = content(boosters["two"], "json"), content(boosters["two"])
    refused = refusal(tmp_path / "model.json", text[: len(text) // 2])
    assert refused.startswith("model 'm' cannot be loaded from 'model.json': the framework cannot read it (XGBoost")
    assert refused.endswith("export the model again")
    for length in (9, 100, 5000, len(binary) // 2, len(binary) - 1):
        refused = refusal(tmp_path / "model.ubj", binary[:length])
        assert refused == "model 'm' cannot be loaded from 'model.ubj': it ends in the middle: copy the whole file"


@pytest.mark.parametrize("document", [b"", b"binf\0\0\0?", b"\x80\x04 a pickle", b"[1, 2]"])
def test_what_is_no_model_is_refused_with_advice(tmp_path: Path, document: bytes) -> None:
    refused = refusal(tmp_path / "model.ubj", document)
    assert "it is neither JSON nor UBJSON; XGBoost's old binary format is no longer read" in refused
    assert "save it with save_model('model.ubj')" in refused


def test_a_file_of_a_newer_release_is_refused(boosters: dict[str, Any], tmp_path: Path) -> None:
    text = content(boosters["two"], "json").replace(b'"version":[', b'"version":[9')
    refused = refusal(tmp_path / "model.json", text)
    assert f"wrote it, and {xgboost.__version__} is installed: install a newer one" in refused
    binary = content(boosters["two"])
    at = binary.rindex(b"version[#L") + 19
    assert binary[at - 1 : at] == b"i"
    refused = refusal(tmp_path / "model.ubj", binary[:at] + b"\x63" + binary[at + 1 :])
    assert "XGBoost 99." in refused and "pip install --upgrade 'xgboost-cpu>=99." in refused


def test_a_threshold_is_a_number(boosters: dict[str, Any], tmp_path: Path) -> None:
    refused = refusal(tmp_path / "model.ubj", content(boosters["two"]), {"threshold": "half"})
    assert "parameter threshold must be a number such as 0.5, got 'half'" in refused


def test_an_instance_for_a_gpu_needs_xgboost_for_gpus(boosters: dict[str, Any], tmp_path: Path) -> None:
    if xgboost.build_info()["USE_CUDA"]:
        pytest.skip("the installed XGBoost has a part for GPUs")
    refused = refusal(tmp_path / "model.ubj", content(boosters["two"]), device="cuda:0")
    assert "the instance is for cuda:0: install xgboost in the place of xgboost-cpu" in refused

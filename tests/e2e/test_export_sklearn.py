"""Models of scikit-learn exported as ONNX, and served with the same answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from support.endpoints import ENDPOINTS
from support.server import ServerProcess

pytest.importorskip("skl2onnx", reason="exports of scikit-learn need it: pip install 'alipes[sklearn]'")
sklearn_linear = pytest.importorskip("sklearn.linear_model")

pytestmark = pytest.mark.extra("sklearn")


@pytest.fixture
def model(tmp_path: Path) -> qv.Model:
    return qv.ModelRepository(tmp_path / "models").add("m", qv.Platform.ONNX)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 4))
    return rows, (rows.sum(axis=1) > 0).astype(np.int64)


def fitted(kind: str) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = {
        "classifier": sklearn_linear.LogisticRegression(),
        "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
        "regressor": sklearn_linear.LinearRegression(),
        "transformer": StandardScaler(),
    }[kind]
    return made.fit(*data())


def test_a_classifier_gives_labels_and_probabilities(model: qv.Model, serve: Callable[..., ServerProcess]) -> None:
    source = fitted("classifier")
    assert model.export_version(source, output_names=["label", "probabilities"]) == "m/1/model.onnx"
    assert model.inputs["input"].shape == (None, 4)
    assert model.outputs["label"].datatype == "INT64"
    assert model.outputs["probabilities"].shape[-1] == 2
    assert model.export_version(fitted("classifier")) == "m/2/model.onnx"
    rows = data()[0].astype(np.float32)
    with ENDPOINTS["http"](serve(str(model.fs))) as client:
        reply = client.ask("m", {"input": rows})
    np.testing.assert_allclose(reply["probabilities"], source.predict_proba(rows), atol=1e-6)
    assert (reply["label"] == source.predict(rows)).mean() > 0.99


@pytest.mark.parametrize("kind", ["pipeline", "regressor", "transformer"])
def test_other_models_are_exported_and_compared(model: qv.Model, kind: str) -> None:
    model.export_version(fitted(kind), input_shapes={"features": (-1, 4)}, examples={"features": data()[0]})
    assert model.inputs["features"].shape == (None, 4)


def test_doubles_stay_doubles(model: qv.Model) -> None:
    model.export_version(fitted("regressor"), input_dtypes=["float64"], input_shapes=[(None, 4)])
    assert model.inputs["input_0"].datatype == "FP64"


def test_what_does_not_fit_is_refused(model: qv.Model) -> None:
    for options, message in (
        ({"output_names": ["label"]}, "1 output names, 'label', for the 2 outputs"),
        ({"input_shapes": {"x": (None, 5)}}, "failed|cannot|differs|ONNX"),
        ({"input_dtypes": ["uint8"]}, "input 'input' is UINT8"),
        ({"examples": {"y": data()[0]}}, "there is no example of input 'input'"),
    ):
        with pytest.raises(ExportError, match=message):
            model.export_version(fitted("classifier"), **options)
    with pytest.raises(ExportError, match="failed"):
        model.export_version(sklearn_linear.LogisticRegression(), input_shapes={"x": (None, 4)})
    assert (model.versions, model.inputs) == ([], {})

"""Keras models exported as SavedModel, and loaded again with the same numbers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError

before = os.environ.get("TF_USE_LEGACY_KERAS")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tensorflow = pytest.importorskip("tensorflow", reason="a SavedModel is TensorFlow's: pip install 'alipes[keras]'")
    keras = pytest.importorskip("keras")

pytestmark = [pytest.mark.extra("keras"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def model(tmp_path: Path) -> qv.Model:
    return qv.ModelRepository(tmp_path / "models").add("m", qv.Platform.SAVEDMODEL)


def two_headed() -> Any:
    keras.utils.set_random_seed(0)
    left, right = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    dropped = keras.layers.Dropout(0.5)(joined)
    return keras.Model(
        [left, right], [keras.layers.Dense(2, name="a")(dropped), keras.layers.Dense(1, name="b")(joined)]
    )


def test_a_model_is_written_with_its_own_names(model: qv.Model, caplog: pytest.LogCaptureFixture) -> None:
    network = two_headed()
    assert model.export_version(network) == "m/1/model.savedmodel"
    assert {name: tensor.shape for name, tensor in model.inputs.items()} == {"left": (None, 4), "right": (None, 3)}
    assert list(model.outputs) == ["a", "b"]
    assert "alipes serve does not run yet" not in caplog.text
    loaded = tensorflow.saved_model.load(str(Path(str(model.fs)) / "m" / "1" / "model.savedmodel"))
    left, right = np.ones((5, 4), np.float32), np.ones((5, 3), np.float32)
    found = loaded.signatures["serving_default"](left=tensorflow.constant(left), right=tensorflow.constant(right))
    np.testing.assert_allclose(found["a"].numpy(), np.asarray(network([left, right])[0]), rtol=1e-5)
    assert model.export_version(network) == "m/2/model.savedmodel"
    assert os.environ.get("TF_USE_LEGACY_KERAS") == before


def test_names_can_be_chosen_and_shapes_must_agree(model: qv.Model) -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with pytest.raises(ExportError, match=r"input 'x' was given as \[None, 5\], the model's is \[None, 4\]"):
        model.export_version(network, input_shapes={"x": (None, 5)}, output_names=["y"])
    with pytest.raises(ExportError, match="1 outputs for the names 'y', 'z'"):
        model.export_version(network, output_names=["y", "z"])
    model.export_version(network, input_shapes={"x": (-1, 4)}, output_names=["y"])
    assert (list(model.inputs), list(model.outputs)) == (["x"], ["y"])


def test_a_sequence_of_layers_is_named_after_its_last(model: qv.Model) -> None:
    model.export_version(keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(2, name="last")]))
    assert (list(model.inputs), list(model.outputs)) == (["x"], ["last"])


def test_a_model_that_was_never_called_is_refused(model: qv.Model) -> None:
    with pytest.raises(ExportError, match="call it once"):
        model.export_version(keras.Sequential([keras.layers.Dense(2)]))
    assert model.versions == []

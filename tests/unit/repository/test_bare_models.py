"""What the files of a store are."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.bare_models import is_stray, model_at, models_below

STRAYS = ("README.md", "SUCCESS.0a1b", ".gitattributes", "LICENSE", "lost+found/x", "..data/x", "__MACOSX/._model.onnx")


def write(folder: Path, *names: str) -> Path:
    """Files by their paths; what is behind a colon is in them."""
    for name in names:
        path, _, text = name.partition(":")
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("names", "backend", "file"),
    [
        (["any.onnx"], "onnxruntime", "any.onnx"),
        (["any.onnx", "any.onnx.data", "labels.txt", "train.py", "config.json:{}"], "onnxruntime", "any.onnx"),
        (["model.onnx", "model_quantized.onnx"], "onnxruntime", "model.onnx"),
        (["model.joblib", "train.py"], "sklearn", "model.joblib"),
        (["model.pickle"], "sklearn", "model.pickle"),
        (["model.bst:tree\nversion=v4"], "lightgbm", "model.bst"),
        (["model.bst", "requirements.txt"], "xgboost", "model.bst"),
        (['iris.json:{"learner":{}}'], "xgboost", "iris.json"),
        (["model.cbm"], "catboost", "model.cbm"),
        (["net.pt"], "pytorch", "net.pt"),
        (["net.pt2"], "pytorch", "net.pt2"),
        (["model.safetensors", "model.py"], "pytorch", "model.safetensors"),
        (["net.keras"], "tensorflow", "net.keras"),
        (["net.xml:<?xml version='1.0'?><net name='n'>", "net.bin", "data.xml:<a/>"], "openvino", "net.xml"),
        (["model.py"], "python", "model.py"),
        (["any.savedmodel/saved_model.pb"], "tensorflow", "any.savedmodel"),
        (["saved_model.pb", "variables/variables.index"], "tensorflow", ""),
        (["MLmodel", "model.pkl", "python_env.yaml"], "mlflow", ""),
    ],
)
def test_files_of_one_model_are_a_bare_model(tmp_path: Path, names: list[str], backend: str, file: str) -> None:
    found = model_at(write(tmp_path, *names, *STRAYS))
    assert found is not None and found.kind is not None
    assert (found.kind.backend, found.file, found.versions) == (backend, file, {1: tmp_path})


def test_one_file_is_a_bare_model(tmp_path: Path) -> None:
    path = write(tmp_path, "a.onnx", "b.onnx") / "a.onnx"
    found = model_at(path)
    assert found is not None and (found.versions, found.file) == ({1: path}, "a.onnx")
    with pytest.raises(RepositoryError, match=r"notes\.csv' is no file of a model that is served; expected"):
        model_at(write(tmp_path, "notes.csv") / "notes.csv")


def test_versions_without_a_name_are_one_model_in_tritons_layout(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", "1/model.onnx", "3/model.onnx", *STRAYS)
    configured = write(tmp_path / "configured", "config.pbtxt:backend: 'x'", "1/weights.bin")
    assert (model_at(plain), model_at(configured)) != (None, None)
    for path in (plain, configured / ""):
        found = model_at(path)
        assert found is not None and (found.path, found.is_arranged) == (path, path == plain)


def test_versions_of_tensorflow_serving_and_of_odd_names_are_arranged(tmp_path: Path) -> None:
    flowers = model_at(write(tmp_path / "flowers", "0001/saved_model.pb", "0002/saved_model.pb"))
    assert flowers is not None and {number: path.name for number, path in flowers.versions.items()} == {
        1: "0001",
        2: "0002",
    }
    odd = model_at(write(tmp_path / "odd", "1/net.onnx"))
    assert odd is not None and (odd.file, list(odd.versions)) == ("net.onnx", [1])


def test_a_configuration_beside_the_file_is_the_bare_models_own(tmp_path: Path) -> None:
    found = model_at(write(tmp_path, "config.pbtxt:max_batch_size: 4", "net.onnx", "labels.txt"))
    assert found is not None and (found.file, found.versions) == ("net.onnx", {1: tmp_path})
    ensemble = model_at(write(tmp_path / "e", 'config.pbtxt:platform: "ensemble"'))
    assert ensemble is not None and (ensemble.kind, list(ensemble.versions)) == (None, [1])


def test_folders_of_models_make_a_parent_or_a_repository(tmp_path: Path) -> None:
    store = write(
        tmp_path,
        "bare/net.onnx",
        "tritons/1/model.onnx",
        "flowers/saved_model.pb",
        "two/a.onnx",
        "two/b.onnx",
        "docs/index.html",
        *STRAYS,
    )
    assert model_at(store) is None
    models, others = models_below(store)
    assert sorted(models) == ["bare", "flowers", "tritons"]
    assert sorted(others) == ["docs", "two"]
    assert "several models, 'a.onnx' and 'b.onnx'" in others["two"]


def test_a_repository_stays_one_with_a_loose_file_in_it(tmp_path: Path) -> None:
    assert model_at(write(tmp_path, "loose.onnx", "m/1/model.onnx")) is None
    assert model_at(write(tmp_path / "bare", "model.onnx", "onnx/model_quantized.onnx")) is not None


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["a.onnx", "b.onnx"], "several models, 'a.onnx' and 'b.onnx': keep one"),
        (["model-1.safetensors", "model.safetensors", "model.py"], "several models"),
        (["model.h5"], "with Keras"),
        (["model.bst:binf"], "before 3.1"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_mend(tmp_path: Path, names: list[str], what: str) -> None:
    with pytest.raises(RepositoryError, match=what):
        model_at(write(tmp_path, *names))


def test_strays_are_known_by_name() -> None:
    assert all(is_stray(name.partition("/")[0]) for name in STRAYS)
    assert not any(is_stray(name) for name in ("model.onnx", "success", "readmemodel", "1", "lost"))

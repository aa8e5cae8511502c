"""What to do with a model's folder in which no model file lies where one is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.advice import holds_file, model_advice

EXPORTED = "(docs/how-to/export-models.md)"


def folder(root: Path, *paths: str) -> Path:
    """A model's folder `m` with these files; a path that ends in a slash is a folder."""
    made = root / "m"
    made.mkdir()
    for path in paths:
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (made / path).mkdir(exist_ok=True)
        else:
            (made / path).write_text("")
    return made


MISTAKES = {
    "a loose ONNX file": (["model.onnx"], "move m/model.onnx to m/1/model.onnx: each version has a folder"),
    "a loose Python file": (["model.py"], "move m/model.py to m/1/model.py: "),
    "a loose pickle": (["model.joblib"], f"export m/model.joblib to ONNX, as m/1/model.onnx {EXPORTED}: a pickled"),
    "a version in letters": (["one/model.onnx"], "rename m/one to m/1: the folder of a version is called by its"),
    "a version with a letter": (["v3/model.onnx"], "rename m/v3 to m/3: "),
    "a version with a leading zero": (["02/model.onnx"], "rename m/02 to m/2: "),
    "version zero with a second zero": (["00/model.onnx"], "rename m/00 to m/1: "),
    "another name of an ONNX file": (
        ["1/mine.onnx"],
        'rename m/1/mine.onnx to model.onnx, or write backend: "onnxruntime" and default_model_filename: "mine.onnx" '
        "into config.pbtxt",
    ),
    "a loose PyTorch file": (["net.pt"], "move m/net.pt to m/1/model.pt: each version has a folder"),
    "another name of a PyTorch file": (
        ["1/weights.pth"],
        'rename m/1/weights.pth to model.pt, or write backend: "pytorch" and default_model_filename: "weights.pth" '
        "into config.pbtxt",
    ),
    "another name of an OpenVINO model": (["1/net.xml", "1/net.bin"], "rename m/1/net.xml to model.xml, or write "),
    "another name of a Python file": (["1/main.py"], "rename m/1/main.py to model.py, or write "),
    "an empty version": (["1/"], "put the model's file into m/1, as model.onnx or model.py: the folder is empty"),
    "a version without a model": (["1/notes.txt"], "put model.onnx or model.py into m/1: there is only notes.txt"),
    "an empty folder": ([], "put the model's file at m/1/model.onnx (or model.py), or remove the folder"),
    "a repository within": (["a/1/model.onnx", "b/1/x"], "serve m itself: it is a repository, of a, b"),
}


@pytest.mark.parametrize(("paths", "advice"), MISTAKES.values(), ids=MISTAKES)
def test_a_folder_without_its_model_file_gets_an_advice(tmp_path: Path, paths: list[str], advice: str) -> None:
    assert model_advice(folder(tmp_path, *paths), "m").startswith(advice)


KINDS = {
    "forest.joblib": "a pickled model",
    "forest.pkl": "a pickled model",
    "model.h5": "a Keras model",
    "model.plan": "a TensorRT plan",
    "model.pb": "a TensorFlow graph",
}


@pytest.mark.parametrize(("file", "kind"), KINDS.items())
@pytest.mark.parametrize("offered", [True, False])
def test_files_of_other_frameworks_are_to_be_exported(tmp_path: Path, file: str, kind: str, offered: bool) -> None:
    advice = model_advice(folder(tmp_path, f"1/{file}"), "m", offered=offered)
    assert advice == f"export m/1/{file} to ONNX, as m/1/model.onnx {EXPORTED}: {kind} is not served as it is"


def test_a_saved_model_is_a_folder(tmp_path: Path) -> None:
    advice = model_advice(folder(tmp_path, "1/saved/saved_model.pb"), "m")
    assert advice == "rename m/1/saved to model.savedmodel: it is a SavedModel"


SOUND = {
    "an ONNX model": ["1/model.onnx"],
    "a Python model among other files": ["3/model.py", "3/helper.py"],
    "a PyTorch model": ["1/model.pt"],
    "a SavedModel": ["1/model.savedmodel/saved_model.pb"],
    "a version that is a SavedModel": ["1/saved_model.pb", "1/variables/variables.index"],
    "a Keras file": ["1/model.keras"],
    "an OpenVINO model": ["1/model.xml", "1/model.bin"],
}


@pytest.mark.parametrize("paths", SOUND.values(), ids=SOUND)
def test_a_folder_as_expected_gets_no_advice(tmp_path: Path, paths: list[str]) -> None:
    assert model_advice(folder(tmp_path, *paths), "m") == ""


def test_a_configured_file_name_is_the_one_that_is_missed(tmp_path: Path) -> None:
    made = folder(tmp_path, "1/other.onnx")
    (made / "config.pbtxt").write_text('backend: "onnxruntime"\ndefault_model_filename: "net.onnx"\n')
    assert model_advice(made, "m") == (
        'rename m/1/other.onnx to net.onnx, or write default_model_filename: "other.onnx" into config.pbtxt'
    )
    (made / "1" / "net.onnx").write_text("")
    assert model_advice(made, "m") == ""


def test_an_ensemble_needs_a_version_and_no_file(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "config.pbtxt").write_text('platform: "ensemble"\n')
    assert model_advice(made, "m") == "make the empty folder m/1: an ensemble has a version, too"
    (made / "1").mkdir()
    assert model_advice(made, "m") == ""


def test_a_backend_without_model_files_misses_none(tmp_path: Path) -> None:
    made = folder(tmp_path, "1/")
    (made / "config.pbtxt").write_text('backend: "averager"\n')
    assert model_advice(made, "m") == ""


def test_a_folder_that_is_gone_gets_no_advice(tmp_path: Path) -> None:
    assert model_advice(tmp_path / "m", "m") == ""
    assert not holds_file(tmp_path / "m")

"""What to do with a model's folder in which no model file lies where one is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.advice import holds_file, model_advice
from alipes.config.file_kinds import ALL_KINDS
from alipes.config.model_files import PLATFORMS

GIT_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
WEB_PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"
XGBOOST = b'{"learner":{"attributes":{}},"version":[2,1,0]}'
XGBOOST_UBJ = b"{L\0\0\0\0\0\0\0\x07learner{"
LIGHTGBM = b"tree\nversion=v4\nnum_class=1\n"
LIGHTGBM_JSON = b'{"name":"tree",\n"version":"v4","num_class":1}'
CATBOOST_JSON = b'{"features_info":{"float_features":[]},"model_info":{},"oblivious_trees":[]}'
PICKLES = ", and start the server with --allow-pickles=MODEL if you trust its author (alipes help sklearn)"


def folder(root: Path, *paths: str, holds: bytes = b"") -> Path:
    """A model's folder `m` with these files, which hold so much; a path that ends in a slash is a folder."""
    made = root / "m"
    made.mkdir()
    for path in paths:
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (made / path).mkdir(exist_ok=True)
        else:
            (made / path).write_bytes(holds)
    return made


MISTAKES = {
    "a loose ONNX file": (["model.onnx"], "move m/model.onnx to m/1/model.onnx: each model has a folder"),
    "a loose Python file": (["model.py"], "move m/model.py to m/1/model.py: "),
    "a loose pickle": (["model.joblib"], f"move m/model.joblib to m/1/model.joblib{PICKLES}: "),
    "a version in letters": (["one/model.onnx"], "rename m/one to m/1: the folder of a version is called by its"),
    "a version with a letter": (["v3/model.onnx"], "rename m/v3 to m/3: "),
    "a version with a leading zero": (["02/model.onnx"], "rename m/02 to m/2: "),
    "version zero with a second zero": (["00/model.onnx"], "rename m/00 to m/1: "),
    "another name of an ONNX file": (
        ["1/mine.onnx"],
        'rename m/1/mine.onnx to model.onnx, or write backend: "onnxruntime" and default_model_filename: "mine.onnx" '
        "into config.pbtxt",
    ),
    "a loose PyTorch file": (["net.pt"], "move m/net.pt to m/1/model.pt: each model has a folder"),
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


NOT_SERVED = {
    "model.h5": "save the model of m/1/model.h5 as m/1/model.keras, with Keras (alipes help tensorflow): it "
    "is a Keras model in the older format",
    "model.plan": "serve the ONNX file that m/1/model.plan was built from, as m/1/model.onnx (alipes help gpus):"
    " it is a TensorRT plan",
    "model.pb": "write m/1/model.pb as a SavedModel, m/1/model.savedmodel (alipes help tensorflow): it is a "
    "TensorFlow graph",
    "net.tflite": "export the model that m/1/net.tflite was made of to ONNX, as m/1/model.onnx "
    "(alipes help export): it is a model of TensorFlow Lite",
}


@pytest.mark.parametrize(("file", "expected"), NOT_SERVED.items())
@pytest.mark.parametrize("offered", [True, False])
def test_files_that_are_not_served_say_what_to_make_of_them(
    tmp_path: Path, file: str, expected: str, offered: bool
) -> None:
    assert model_advice(folder(tmp_path, f"1/{file}"), "m", offered=offered) == expected


def renamed(name: str, usual: str, backend: str, further: str = "") -> str:
    named = f'backend: "{backend}" and default_model_filename: "{name}"'
    return f"rename m/1/{name} to {usual}, or write {named} into config.pbtxt{further}"


OLD_XGBOOST = (
    "open m/1/{0} with the XGBoost that wrote it (before 3.1), and save it as m/1/model.ubj: it is a model of XGBoost "
    "in its old binary format"
)

NAMES = {
    "forest.joblib": (b"", renamed("forest.joblib", "model.joblib", "sklearn", PICKLES)),
    "model.pickle": (b"", renamed("model.pickle", "model.pkl", "sklearn", PICKLES)),
    "model.bst": (XGBOOST_UBJ, renamed("model.bst", "model.ubj", "xgboost")),
    "xgboost.model": (XGBOOST, renamed("xgboost.model", "model.json", "xgboost")),
    "old.bst": (b"binf\0\0\0?\4\0\0\0", OLD_XGBOOST.format("old.bst")),
    "older.bst": (b"\0\0\0?\4\0\0\0", OLD_XGBOOST.format("older.bst")),
    "model.lgb": (LIGHTGBM, renamed("model.lgb", "model.txt", "lightgbm")),
    "churn.txt": (LIGHTGBM, renamed("churn.txt", "model.txt", "lightgbm")),
    "trees": (b"CBM1\0", renamed("trees", "model.cbm", "catboost")),
    "model.safetensors": (
        b"",
        'put a model.py with make() beside it, with backend: "pytorch" in config.pbtxt (alipes help pytorch): '
        "m/1/model.safetensors is weights",
    ),
}


@pytest.mark.parametrize(("file", "holds", "expected"), [(name, *row) for name, row in NAMES.items()], ids=NAMES)
def test_the_names_that_other_tools_give_are_known(tmp_path: Path, file: str, holds: bytes, expected: str) -> None:
    assert model_advice(folder(tmp_path, f"1/{file}", holds=holds), "m") == expected


DISGUISED = {
    "a pointer of Git LFS": (
        "model.onnx",
        GIT_LFS,
        "fetch m/1/model.onnx with: git lfs pull: it is a pointer of Git LFS, not the model",
    ),
    "a pointer of Git LFS as a program": (
        "model.py",
        GIT_LFS,
        "fetch m/1/model.py with: git lfs pull: it is a pointer of Git LFS, not the model",
    ),
    "a web page": (
        "model.onnx",
        WEB_PAGE,
        "download m/1/model.onnx again, from the address of the file itself: it is a web page, not the model",
    ),
    "a web page as a Keras file": (
        "model.keras",
        b"\n <HTML>",
        "download m/1/model.keras again, from the address of the file itself: it is a web page, not the model",
    ),
    "LightGBM's JSON": (
        "model.json",
        LIGHTGBM_JSON,
        "save the model of m/1/model.json with Booster.save_model('model.txt'), as m/1/model.txt: it is LightGBM's "
        "description of a model, which it does not read itself",
    ),
    "CatBoost's JSON": (
        "model.json",
        CATBOOST_JSON,
        "save the model of m/1/model.json with save_model('model.cbm'), as m/1/model.cbm: it is a model of CatBoost as "
        "JSON",
    ),
    "an old model of XGBoost": ("model.ubj", b"binf\0\0", OLD_XGBOOST.format("model.ubj")),
    "LightGBM's text": ("model.ubj", LIGHTGBM, "rename m/1/model.ubj to model.txt: it is a model of LightGBM"),
}


@pytest.mark.parametrize(("file", "holds", "expected"), DISGUISED.values(), ids=DISGUISED)
@pytest.mark.parametrize("config", ["", 'backend: "{}"'])
def test_first_bytes_tell_what_a_file_is_in_truth(
    tmp_path: Path, file: str, holds: bytes, expected: str, config: str
) -> None:
    made = folder(tmp_path, f"1/{file}", holds=holds)
    backend = next(row.backend for row in PLATFORMS if row.filename == file)
    (made / "config.pbtxt").write_text(config.format(backend))
    # Where the configuration names a backend, the file is not given to another.
    assert model_advice(made, "m") == ("" if config and expected.startswith("rename") else expected)


def test_weights_beside_a_factory_need_their_backend(tmp_path: Path) -> None:
    made = folder(tmp_path, "1/model.py", "1/model.safetensors")
    expected = 'write backend: "pytorch" into config.pbtxt, if m/1/model.py makes the module of model.safetensors'
    assert model_advice(made, "m") == expected
    (made / "config.pbtxt").write_text('backend: "python"')
    assert model_advice(made, "m") == ""


FOLDERS = {
    "a SavedModel as the model's folder": (
        ["saved_model.pb", "variables/variables.index"],
        "move what is in m to m/1: it is a SavedModel, and each version has a folder",
    ),
    "an MLflow folder as the model's folder": (
        ["MLmodel", "model.pkl", "conda.yaml"],
        "move what is in m to m/1: it is a folder that MLflow saved, and each version has a folder",
    ),
    "an MLflow folder of another name": (
        ["1/churn/MLmodel", "1/churn/model.pkl"],
        "rename m/1/churn to model.mlflow: it is a folder that MLflow saved",
    ),
}


@pytest.mark.parametrize(("paths", "expected"), FOLDERS.values(), ids=FOLDERS)
def test_folders_are_known_by_what_they_hold(tmp_path: Path, paths: list[str], expected: str) -> None:
    assert model_advice(folder(tmp_path, *paths), "m") == expected


def test_every_name_that_is_advised_is_one_that_is_served() -> None:
    """A file that is renamed as advised is found."""
    served = {(row.filename, row.backend) for row in PLATFORMS if row.served}
    advised = {(kind.filename, kind.backend) for kind in ALL_KINDS if kind.is_served}
    assert advised <= served
    assert [kind for kind in ALL_KINDS if kind.is_served == bool(kind.mend)] == []


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

"""What to do with a path that was given as a repository and is none, or is an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.repository.path_advice import beside_advice, empty_advice, refused_advice
from alipes.repository.single_files import is_single_file


def file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_a_file_in_its_version_leads_to_its_repository(tmp_path: Path) -> None:
    path = file(tmp_path / "models" / "digits" / "1" / "model.onnx")
    assert refused_advice(path) == f"serve the folder of its repository: alipes serve {tmp_path}/models"


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("digits.onnx", "put the file at MODELS/digits/1/model.onnx"),
        ("louder.py", "put the file at MODELS/louder/1/model.py"),
        ("net.pt", "put the file at MODELS/net/1/model.pt"),
        ("net.keras", "put the file at MODELS/net/1/model.keras"),
        ("churn.bst", "put the file at MODELS/churn/1/model.ubj"),
    ],
)
def test_a_file_elsewhere_is_to_be_put_into_a_repository(tmp_path: Path, name: str, mend: str) -> None:
    advice = refused_advice(file(tmp_path / name))
    assert advice == f"{mend}, and serve that folder: alipes serve MODELS"


@pytest.mark.parametrize("name", ["notes.txt", "data.csv", "weights", "net.bin"])
def test_a_file_of_no_model_names_the_kinds_that_are_served(tmp_path: Path, name: str) -> None:
    advice = refused_advice(file(tmp_path / name))
    assert advice.startswith(
        f"{name} is no file of a model: serve a folder of models, a program in Python (app.py), or"
    )
    ends = advice.partition("ends in one of ")[2].split(", ")
    assert {".onnx", ".pt2", ".keras", ".ubj", ".joblib"} <= set(ends)
    for end in ends:
        assert is_single_file(str(file(tmp_path / f"model-a{end}"))), end


def test_an_absent_path_names_the_nearest_folder(tmp_path: Path) -> None:
    file(tmp_path / "models" / "digits" / "1" / "model.onnx")
    file(tmp_path / "modelz")
    assert refused_advice(tmp_path / "modles") == f"did you mean {tmp_path}/models?"
    assert refused_advice(tmp_path / "modles" / "digits") == f"did you mean {tmp_path}/models/digits?"


def test_an_absent_path_without_a_neighbour_says_from_where_on(tmp_path: Path) -> None:
    assert refused_advice(tmp_path / "nowhere" / "models") == (
        f"there is no folder {tmp_path}/nowhere: make it, or name the one that holds the models"
    )


def test_an_empty_repository_shows_where_a_model_goes(tmp_path: Path) -> None:
    assert empty_advice(tmp_path) == f"put one at {tmp_path}/NAME/1/model.onnx (alipes help files)"
    file(tmp_path / "notes.txt")
    file(tmp_path / "net.h5")
    assert empty_advice(tmp_path).startswith(f"save the model of {tmp_path}/net.h5 as {tmp_path}/net/1/model.keras, ")
    file(tmp_path / "digits.onnx")
    assert empty_advice(tmp_path).startswith(f"move {tmp_path}/digits.onnx to {tmp_path}/digits/1/model.onnx: ")
    assert empty_advice(tmp_path / "nowhere") == ""


def test_a_folder_of_programs_shows_how_one_is_served(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import alipes\n", encoding="utf-8")
    assert empty_advice(tmp_path) == f"serve the program itself: alipes serve {tmp_path}/app.py"


def test_files_that_lead_to_no_model_say_what_to_make_of_them(tmp_path: Path) -> None:
    advice = refused_advice(file(tmp_path / "net.h5"))
    assert advice == (
        "save the model of it as MODELS/net/1/model.keras, with Keras (alipes help tensorflow): it is a Keras "
        "model in the older format; then serve that folder: alipes serve MODELS"
    )
    advice = refused_advice(file(tmp_path / "forest.pkl"))
    assert advice.startswith("put the file at MODELS/forest/1/model.pkl, and serve that folder: alipes serve MODELS, ")
    assert "--allow-pickles=MODEL" in advice


def test_a_loose_file_beside_models_is_named(tmp_path: Path) -> None:
    file(tmp_path / "digits" / "1" / "model.onnx")
    file(tmp_path / "client.py")
    file(tmp_path / "README.md")
    assert beside_advice(tmp_path) == ""
    file(tmp_path / "net.pt")
    assert beside_advice(tmp_path).startswith(f"move {tmp_path}/net.pt to {tmp_path}/net/1/model.pt: ")
    assert beside_advice(tmp_path / "nowhere") == ""

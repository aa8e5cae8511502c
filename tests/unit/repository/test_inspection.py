"""What is said of a repository's folders and files: what is wrong, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.repository.inspection import FoundModel, inspect
from alipes.repository.store.open import open_store
from support.models import add_model


def remarks(repository: Path) -> dict[str, str]:
    return inspect(open_store(repository)).remarks


def write(repository: Path, path: str, content: str = "") -> None:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def test_models_are_found_with_their_kind_and_versions(repository: Path) -> None:
    add_model(repository, "onnx", versions=(1, 3, 12))
    write(repository, "python/1/model.py")
    write(repository, "forest/1/model.ubj")
    write(repository, "script/1/model.pt")
    write(repository, "keras/1/model.keras")
    write(repository, "saved/2/model.savedmodel/saved_model.pb")
    write(repository, "xml/1/model.xml")
    write(repository, "chain/config.pbtxt", 'platform: "ensemble"')
    (repository / "chain" / "1").mkdir()
    write(repository, "states/config.pbtxt", 'backend: "averager"')
    (repository / "states" / "1").mkdir()
    found = inspect(open_store(repository))
    assert found.models == [
        FoundModel("chain", "ensemble", (1,)),
        FoundModel("forest", "xgboost", (1,)),
        FoundModel("keras", "tensorflow", (1,)),
        FoundModel("onnx", "onnxruntime", (1, 3, 12)),
        FoundModel("python", "python", (1,)),
        FoundModel("saved", "tensorflow", (2,)),
        FoundModel("script", "pytorch", (1,)),
        FoundModel("states", "averager", (1,)),
        FoundModel("xml", "openvino", (1,)),
    ]
    assert found.remarks == {}


@pytest.mark.parametrize(
    ("path", "content", "at", "mend"),
    [
        ("m/one/model.onnx", "", "m/one", "rename it to 1"),
        ("m/01/model.onnx", "", "m/01", "rename it to 1"),
        ("m/model.onnx", "", "m/model.onnx", "move it to m/1/model.onnx"),
        ("m/model.py", "", "m/model.py", "move it to m/1/model.py"),
        (
            "m/model.joblib",
            "",
            "m/model.joblib",
            "m/1/model.joblib, and start the server with --allow-pickles",
        ),
        ("m/1/net.pt", "", "m/1/net.pt", "rename it to model.pt"),
        ("m/1/model.plan", "", "m/1/model.plan", "serve the ONNX file that it was built from"),
        ("m/other.ubj", "", "m/other.ubj", "move it to m/1/model.ubj"),
        ("m/1/other.cbm", "", "m/1/other.cbm", "rename it to model.cbm"),
        ("m.skops", "", "m.skops", "move it to m/1/model.skops"),
        ("m/1/other.onnx", "", "m/1/other.onnx", "rename it to model.onnx"),
        ("m/1/notes.txt", "", "m/1", "put model.onnx or model.py into it"),
        ("m/config.pbtxt", 'backend: "python"', "m", "put the model's file at m/1/model.py"),
        ("m/config.pbtxt", 'platform: "ensemble"', "m", "make the empty folder m/1"),
        ("m/config.pbtxt", "max_batch_sise: 8", "m/config.pbtxt", "max_batch_size"),
        ("m/1/net.xml", "", "m/1/net.xml", "rename it to model.xml"),
        ("m/model.keras", "", "m/model.keras", "move it to m/1/model.keras"),
        ("m.onnx", "", "m.onnx", "move it to m/1/model.onnx"),
        ("m.pt", "", "m.pt", "move it to m/1/model.pt"),
        ("1/model.onnx", "", "", "name the folder that it is in"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(path: str, content: str, at: str, mend: str, repository: Path) -> None:
    write(repository, path, content)
    found = remarks(repository)
    assert mend in found[at]


def test_an_empty_repository_says_how_to_fill_it(repository: Path) -> None:
    assert "alipes repo add" in remarks(repository)[""]


def test_a_configuration_may_name_another_file(repository: Path) -> None:
    write(repository, "m/1/other.onnx")
    write(repository, "m/config.pbtxt", 'backend: "onnxruntime" default_model_filename: "other.onnx"')
    assert remarks(repository) == {}


def test_folders_beside_the_versions_are_no_mistakes(repository: Path) -> None:
    folder = add_model(repository, "m")
    for name in ("warmup", "initial_state", "configs", "tokens"):
        (folder / name).mkdir()
    assert remarks(repository) == {}


def test_the_backend_of_another_package_has_files_of_its_own(repository: Path) -> None:
    write(repository, "m/1/weights.bin")
    write(repository, "m/config.pbtxt", 'backend: "theirs"')
    assert remarks(repository) == {}


def test_a_model_for_another_server_is_to_be_exported(repository: Path) -> None:
    write(repository, "m/1/model.plan")
    write(repository, "m/config.pbtxt", 'platform: "tensorrt_plan"')
    assert "the ONNX file that it was built from" in remarks(repository)["m/1/model.plan"]

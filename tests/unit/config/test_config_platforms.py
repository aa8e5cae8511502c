from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.model_files import PLATFORMS
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.platforms import backend_of, complete_backend
from alipes.config.schema import new_config
from alipes.errors import ConfigError
from alipes.repository.platform import BACKENDS, conventions, platform_of
from alipes.repository.platform import Platform as Exported


def completed(folder: Path, text: str = "", name: str = "m") -> tuple[str, str, str]:
    config = parse_pbtxt(text)
    complete_backend(config, folder, name)
    assert config.name == name
    return config.backend, config.platform, config.default_model_filename


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "m"
    made.mkdir()
    return made


def put(folder: Path, version: str, filename: str) -> None:
    (folder / version).mkdir(exist_ok=True)
    (folder / version / filename).write_bytes(b"")


ONNX = ("onnxruntime", "onnxruntime_onnx", "model.onnx")


@pytest.mark.parametrize(
    "row", [row for row in PLATFORMS if row.filename and not row.beside], ids=lambda row: row.filename
)
def test_a_model_file_tells_backend_and_platform(folder: Path, row: object) -> None:
    put(folder, "1", row.filename)  # type: ignore[attr-defined]
    assert completed(folder) == (row.backend, row.platform, row.filename)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ['backend: "onnxruntime"', 'platform: "onnxruntime_onnx"', 'default_model_filename: "model.onnx"'],
)
def test_one_of_the_three_fields_tells_the_others(folder: Path, text: str) -> None:
    assert completed(folder, text) == ONNX


@pytest.mark.parametrize("text", ['backend: "snapshotter"', 'platform: "snapshotter"'])
def test_a_kind_without_a_model_file_is_found_by_its_name(folder: Path, text: str) -> None:
    put(folder, "1", "model.onnx")
    assert completed(folder, text) == ("snapshotter", "snapshotter", "")


def test_what_is_written_stays(folder: Path) -> None:
    put(folder, "1", "model.py")
    text = 'backend: "onnxruntime" default_model_filename: "net.onnx"'
    assert completed(folder, text) == ("onnxruntime", "onnxruntime_onnx", "net.onnx")


def test_files_are_looked_for_in_tritons_order(folder: Path) -> None:
    put(folder, "1", "model.py")
    put(folder, "1", "model.onnx")
    assert completed(folder) == ONNX


def test_the_first_version_by_its_letters_counts(folder: Path) -> None:
    put(folder, "2", "model.py")
    put(folder, "10", "model.onnx")
    put(folder, "configs", "model.plan")
    assert completed(folder) == ONNX


def test_two_rows_of_one_backend_are_distinguished_by_the_file(folder: Path) -> None:
    put(folder, "1", "model.pt2")
    assert completed(folder, 'backend: "pytorch"') == ("pytorch", "torch_aoti", "model.pt2")


def test_a_backend_that_is_unknown_stays_as_it_is(folder: Path) -> None:
    put(folder, "1", "model.onnx")
    assert completed(folder, 'backend: "mine"') == ("mine", "", "")


def test_an_ensemble_has_no_backend(folder: Path) -> None:
    assert completed(folder, 'platform: "ensemble"') == ("", "ensemble", "")


def test_the_model_name_tells_a_backend_last(tmp_path: Path) -> None:
    made = tmp_path / "twice.mine"
    made.mkdir()
    assert completed(made, name="twice.mine") == ("mine", "", "model.mine")


@pytest.mark.parametrize("version", [None, "1"])
def test_a_model_without_any_sign_is_refused(folder: Path, version: str | None) -> None:
    if version is not None:
        put(folder, version, "notes.txt")
    with pytest.raises(ConfigError) as caught:
        completed(folder)
    assert str(caught.value) == (
        "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'."
    )


def test_a_folder_that_is_absent_has_no_files(tmp_path: Path) -> None:
    assert completed(tmp_path / "absent", 'backend: "onnxruntime"') == ONNX


def test_platforms_belong_to_backends() -> None:
    assert backend_of("onnxruntime_onnx") == "onnxruntime"
    assert backend_of("libtorch") == "pytorch"
    assert backend_of("tensor_magic") is None
    assert backend_of("") is None


def test_weights_beside_a_module_are_left_to_the_backend(folder: Path) -> None:
    put(folder, "1", "model.safetensors")
    assert completed(folder, 'backend: "pytorch"') == ("pytorch", "pytorch_libtorch", "model.pt")


def test_what_can_be_exported_is_called_as_what_is_served() -> None:
    for row in PLATFORMS:
        if row.export:
            platform = Exported[row.export]
            assert (BACKENDS[platform], conventions[platform]) == (row.backend, row.filename or "model.empty")
            config = new_config(name="m", backend=row.backend, platform=row.platform)
            config.default_model_filename = row.filename
            assert platform_of(config) is platform
    assert {row.export for row in PLATFORMS if row.export} == {one.name for one in Exported} - {"ENSEMBLE"}

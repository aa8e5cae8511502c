"""Which words of `alipes serve` name one model's file, and what a server makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError
from alipes.repository.single_files import is_single_file, with_single_files

# A file's name and its first bytes -> whether it is served by itself.
FILES = {
    ("iris.joblib", b"\x80\x04"): True,
    ("iris.skops", b"PK"): True,
    ("model.onnx", b"\x08"): True,
    ("net.pt2", b"PK"): True,
    ("net.pth", b"PK"): True,
    ("model.ubj", b"{L\0\0\0\0\0\0\0\x07version"): True,
    ("model.xgb", b"{L\0\0\0\0\0\0\0\x07version"): True,
    ("trees.json", b'{"learner": {}}'): True,
    ("trees.json", b'{"a": 1}'): False,
    ("trees.txt", b"tree\nversion=v4\n"): True,
    ("notes.txt", b"hello"): False,
    ("model.cbm", b"CBM1"): True,
    ("digits.keras", b"PK"): True,
    ("digits.h5", b"\x89HDF"): False,
    ("app.py", b"import alipes"): False,
}


@pytest.mark.parametrize(("file", "is_served"), FILES.items(), ids=str)
def test_the_files_of_models_that_are_served_are_served_by_themselves(
    tmp_path: Path, file: tuple[str, bytes], is_served: bool
) -> None:
    name, content = file
    (tmp_path / name).write_bytes(content)
    assert is_single_file(str(tmp_path / name)) == is_served


def test_a_folder_that_is_a_model_is_served_by_itself_too(tmp_path: Path) -> None:
    (tmp_path / "flowers").mkdir()
    assert not is_single_file(str(tmp_path / "flowers"))
    (tmp_path / "flowers" / "saved_model.pb").touch()
    assert is_single_file(str(tmp_path / "flowers"))


def test_a_file_at_its_place_in_a_repository_is_left_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / "digits" / "1").mkdir(parents=True)
    (tmp_path / "digits" / "1" / "model.onnx").touch()
    assert not is_single_file(str(tmp_path / "digits" / "1" / "model.onnx"))
    assert not is_single_file(str(tmp_path / "none.onnx"))


def test_pickles_among_the_repositories_are_allowed_by_name(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    pickled, plain, folder = (str(tmp_path / name) for name in ("iris.joblib", "flowers.onnx", "models"))
    for file in (pickled, plain):
        Path(file).touch()
    options = with_single_files(parse_flags([folder, pickled, plain], {}))
    assert (options.repository.paths, options.repository.files) == ((folder,), (pickled, plain))
    assert options.model.allow_pickles == ("iris",)
    [notice] = [one for one in options.notices if "iris" in one]
    assert notice == (
        f"model 'iris': its file may run code while it is read, which is allowed since {pickled} was named by itself"
    )
    assert (options.model.default_max_batch_size, options.model.default_max_batch_bytes) == (1024, 16 << 20)
    chosen = parse_flags([folder, pickled, "--backend-config=default-max-batch-size=4"], {})
    assert with_single_files(chosen).model.default_max_batch_size == 4
    alone = parse_flags([folder], {})
    assert with_single_files(alone) is alone


def test_two_files_of_one_name_are_refused_with_both_paths(tmp_path: Path) -> None:
    first, second = (str(tmp_path / name) for name in ("iris.onnx", "iris.joblib"))
    for file in (first, second):
        Path(file).touch()
    with pytest.raises(ConfigError, match=r"would both be served as 'iris': rename one of them") as caught:
        with_single_files(parse_flags([first, second], {}))
    assert first in str(caught.value)
    assert second in str(caught.value)
    with_single_files(parse_flags([first, second, "--model-namespacing=true"], {}))


def test_a_pickle_called_model_is_allowed_under_the_name_of_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "flowers" / "model.joblib"
    file.parent.mkdir()
    file.touch()
    assert with_single_files(parse_flags([str(file)], {})).model.allow_pickles == ("flowers",)

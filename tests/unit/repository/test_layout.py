"""What a model's folder holds, and which names are safe."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.layout import ModelFolder, check_model_name, subdirectories


def folder_with(path: Path, *directories: str) -> ModelFolder:
    for name in directories:
        (path / name).mkdir()
    return ModelFolder(path.name, path)


def test_versions_are_numbers_in_ascending_order(tmp_path: Path) -> None:
    assert folder_with(tmp_path, "10", "2", "1", "0").scan_versions().versions == (0, 1, 2, 10)


@pytest.mark.parametrize("name", ["01", "00", "0abc"])
def test_a_leading_zero_is_ignored_with_a_warning(tmp_path: Path, name: str) -> None:
    found = folder_with(tmp_path, name, "1").scan_versions()
    assert found.versions == (1,)
    assert found.ignored == (f"ignore version directory '{name}' which contains leading zeros in its directory name",)


@pytest.mark.parametrize("name", ["abc", "1a", "-1", "+1", " 1", "1.0", "2_old", "٣", "9" * 19])
def test_a_directory_that_is_no_number_is_ignored_with_a_warning(tmp_path: Path, name: str) -> None:
    found = folder_with(tmp_path, name).scan_versions()
    assert found.versions == ()
    assert found.ignored == (f"ignore version directory '{name}' which fails to convert to integral number",)


def test_other_folders_of_a_model_are_ignored_silently(tmp_path: Path) -> None:
    found = folder_with(tmp_path, "warmup", "initial_state", "configs", ".cache", "1").scan_versions()
    assert (found.versions, found.ignored) == ((1,), ())


def test_a_file_with_the_name_of_a_number_is_no_version(tmp_path: Path) -> None:
    (tmp_path / "2").write_text("")
    assert ModelFolder("m", tmp_path).scan_versions().versions == ()


def test_a_link_to_a_directory_is_a_version(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "7").symlink_to(tmp_path / "elsewhere")
    assert ModelFolder("model", folder).scan_versions().versions == (7,)


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="failed to open directory"):
        ModelFolder("gone", tmp_path / "gone").scan_versions()


@pytest.mark.parametrize("name", ["", " ", "\t", ".", "..", "../other", "a/b", "a\\b", "a\0b", ".hidden", "a..b"])
def test_a_name_that_could_leave_the_repository_is_refused(name: str) -> None:
    with pytest.raises(RepositoryError, match="invalid model name"):
        check_model_name(name)


@pytest.mark.parametrize("name", ["mlp", "model.v2", "a b", "modèle", "x-y_z"])
def test_an_ordinary_name_is_accepted(name: str) -> None:
    check_model_name(name)


def test_hidden_folders_and_files_are_no_models(tmp_path: Path) -> None:
    folder_with(tmp_path, "b", "a", ".git")
    (tmp_path / "README.md").write_text("")
    assert subdirectories(tmp_path) == ["a", "b"]


def test_a_folder_without_configuration_and_version_is_blank(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "warmup", "docs")
    (tmp_path / "README.md").write_text("")
    assert folder.is_blank()
    (tmp_path / "config.pbtxt").write_text("")
    assert not folder.is_blank()
    (tmp_path / "config.pbtxt").unlink()
    (tmp_path / "1").mkdir()
    assert not folder.is_blank()
    assert not ModelFolder("gone", tmp_path / "gone").is_blank()

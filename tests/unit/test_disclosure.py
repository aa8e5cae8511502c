"""What of an error's text leaves the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.disclosure import hidden_prefixes, public, readable
from alipes.errors import ModelLoadError


@pytest.fixture(params=["itself", "link"])
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The folder for temporary files; once as it is, and once where only a link to it is known."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    monkeypatch.setattr("tempfile.tempdir", str(folder if request.param == "itself" else link))
    return folder


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("alipes-load-ab_3x9/q1w2e3/m/1/model.onnx", "m/1/model.onnx"),
        ("alipes-repository-x/models/m/config.pbtxt", "m/config.pbtxt"),
        ("alipes-0/environments/0af3-91bc/bin/python", "environment/bin/python"),
        ("alipes-0/environments/", "environments/"),
        ("alipes-load-ab_3x9", ""),
        ("alipes-serve-x/file", "file"),
        ("mine/file", None),
    ],
)
def test_folders_for_temporary_files_are_left_out(temporary: Path, path: str, shown: str | None) -> None:
    text = f"cannot read '{temporary}/{path}': no such file"
    assert public(text) == (text if shown is None else f"cannot read '{shown}': no such file")


def test_paths_in_repositories_stay(temporary: Path) -> None:
    assert public("failed to stat file /models/m/1/model.onnx") == "failed to stat file /models/m/1/model.onnx"


def test_what_an_error_hides_is_left_out() -> None:
    error = ModelLoadError("the interpreter /opt/x/bin/python of /opt/x").hiding(
        {"/opt/x": "x", "/opt/x/bin/python": "python"}
    )
    assert public(error.reason, error.private) == "Internal: the interpreter python of x"
    assert "/opt/x/bin/python" in error.reason, "the log has it"


def test_odd_bytes_are_spelled_out() -> None:
    assert readable("caf\u00e9 \udcff \ud800") == "caf\u00e9 \\udcff \\ud800"


def test_beginnings_of_paths_are_hidden_where_models_run(temporary: Path) -> None:
    folder = temporary / "alipes-load-a" / "b" / "m"
    python = temporary / "alipes-0" / "environments" / "0af3-91bc" / "bin" / "python"
    hidden = hidden_prefixes(folder, python)
    assert hidden[f"{temporary}/alipes-load-a/b/"] == ""
    assert hidden[f"{temporary}/alipes-0/environments/0af3-91bc"] == "environment"
    assert hidden_prefixes("/models/m", "/usr/bin/python3") == {}


def test_without_a_folder_for_temporary_files_texts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", refuse)
    assert public("/tmp/alipes-load-a/b/m") == "/tmp/alipes-load-a/b/m"
    assert hidden_prefixes("/tmp/alipes-load-a/b/m") == {}

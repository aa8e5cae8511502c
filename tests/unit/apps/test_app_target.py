"""An app is told from a folder of models by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.apps.target import is_app, target_of
from alipes.errors import ConfigError


def test_files_and_modules_are_apps_and_folders_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "odd.py").mkdir()
    apps = ["app.py", "folder/app.py:add", "app.py:my-model", "package.module:name", "module:name"]
    others = ["models", "odd.py", "s3://bucket/app.py", "localhost:8000", "model.pyc", "a/b:c", "module:"]
    assert [word for word in apps + others if is_app(word)] == apps


def test_a_target_has_a_file_or_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").touch()
    one, other = target_of("app.py:add"), target_of("package.module:name")
    assert (one.file, one.name) == (str(tmp_path / "app.py"), "add")
    assert (other.module, other.root, other.name) == ("package.module", str(tmp_path), "name")
    with pytest.raises(ConfigError, match=r"did you mean app\.py\? There is no file apq\.py"):
        target_of("apq.py")

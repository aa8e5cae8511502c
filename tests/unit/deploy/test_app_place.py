"""What of the folder of an app goes into an image."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from alipes.deploy.app_place import app_file, find_app
from alipes.errors import ConfigError


def test_an_app_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "models.py").mkdir()
    assert app_file("folder/app.py") == Path("folder/app.py")
    assert app_file("models") is app_file("s3://bucket/app.py") is app_file(str(tmp_path / "models.py")) is None


def test_an_app_goes_in_with_what_lies_beside_it_and_nothing_else(tmp_path: Path) -> None:
    files = ["app.py", "helper.py", "weights/net.onnx"]
    others = [".git/config", "__pycache__/app.pyc", "env/pyvenv.cfg", "env/bin/python", ".env", "image/oci-layout"]
    for name in (*files, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_app(tmp_path / "app.py")
    assert found.names == ["app.py"]
    assert sorted(found.contents) == ["app", *(f"app/{name}" for name in files)]
    assert found.left_out == (".env", ".git", "env", "image")


def test_images_that_were_written_beside_an_app_stay_out(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "oci-layout").touch()
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "cat.png").touch()
    for name, first in (("old.tar", "oci-layout"), ("data.tar", "rows.csv")):
        with tarfile.open(tmp_path / name, "w") as archive:
            archive.addfile(tarfile.TarInfo(first))
    found = find_app(tmp_path / "app.py")
    assert sorted(found.contents) == ["app", "app/app.py", "app/data.tar", "app/image/cat.png"]
    assert found.left_out == ("built", "old.tar")


def test_an_app_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*app\.py"):
        find_app(tmp_path / "app.py")

"""Two distributions that own the files of one package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from alipes.errors import ServerStartError
from alipes.server import installation


def installed(site: Path, distribution: str, version: str, *files: str) -> None:
    """As pip leaves a distribution behind."""
    info = site / f"{distribution}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text("".join(f"{file},sha256=0,1\n" for file in (*files, f"{info.name}/RECORD")))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package `onnxruntime`, in front of all others."""
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)  # where it is imported, nobody looks for it
    return tmp_path


def test_two_builds_of_the_engine_are_refused_by_name(site: Path) -> None:
    installed(site, "onnxruntime", "1.20.0", "onnxruntime/__init__.py")
    installed(site, "onnxruntime_gpu", "1.21.0", "onnxruntime/__init__.py")
    with pytest.raises(ServerStartError) as refused:
        installation.check_installation()
    assert str(refused.value).splitlines() == [
        "2 builds of ONNX Runtime are installed and overwrite each other's files: onnxruntime 1.20.0 and "
        "onnxruntime-gpu 1.21.0.",
        "Remove them all, then install the one that you want:",
        "  pip uninstall -y onnxruntime onnxruntime-gpu",
    ]


def test_one_build_beside_packages_with_longer_names_is_served(site: Path) -> None:
    installed(site, "onnxruntime_openvino", "1.21.0", "onnxruntime/__init__.py")
    installed(site, "onnxruntime_extensions", "0.13.0", "onnxruntime_extensions/__init__.py")
    (site / "onnxruntime_lost-1.0.dist-info").mkdir()
    installation.check_installation()
    assert installation.owners("onnxruntime", [site]) == [("onnxruntime-openvino", "1.21.0")]


def test_alipes_beside_its_core_is_two_owners_where_both_hold_the_files(tmp_path: Path) -> None:
    installed(tmp_path, "alipes_core", "0.1.0", "alipes/__init__.py")
    installed(tmp_path, "alipes", "0.1.0", "alipes-0.1.0.dist-info/METADATA")
    assert installation.owners("alipes", [tmp_path]) == [("alipes-core", "0.1.0")]
    installed(tmp_path, "alipes", "0.2.0", "alipes/__init__.py")
    assert installation.owners("alipes", [tmp_path]) == [("alipes", "0.2.0"), ("alipes-core", "0.1.0")]

"""Which installed packages a server needs, and which of their files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from alipes.deploy.image.interpreter import PYTHON, interpreter
from alipes.deploy.image.packages import find_packages
from alipes.errors import ConfigError


@pytest.fixture(scope="module")
def names() -> dict[str, set[str]]:
    return {one.name: set(one.contents) for one in find_packages()}


def test_what_alipes_requires_goes_in_and_what_tests_need_does_not(names: dict[str, set[str]]) -> None:
    assert {"alipes", "numpy", "onnxruntime", "protobuf", "typer", "rich"} <= set(names)
    assert names.keys() & {"pytest", "mypy", "pip", "ruff"} == set()


def test_our_own_package_goes_in_whole(names: dict[str, set[str]]) -> None:
    ours = names["alipes"]
    assert {"alipes/__init__.py", "alipes/_core.abi3.so", "alipes/worker/executor.py"} <= ours
    assert any(path.endswith(".dist-info/METADATA") for path in ours)


def test_nothing_goes_in_that_no_server_reads(names: dict[str, set[str]]) -> None:
    paths = {path for found in names.values() for path in found}
    assert paths
    unused = [path for path in paths if path.endswith((".pyc", ".pyi", ".h", ".pth")) or "/tests/" in path]
    assert unused == []
    assert [path for path in paths if path.endswith(("/RECORD", "/INSTALLER", "/direct_url.json"))] == []


def test_a_further_package_brings_what_it_requires(names: dict[str, set[str]]) -> None:
    more = {one.name for one in find_packages(more=["pytest"])}
    assert more - names.keys() >= {"pytest", "pluggy", "iniconfig"}


def test_licences_and_versions_are_those_of_the_metadata() -> None:
    found = {one.name: one for one in find_packages()}
    assert found["alipes"].licence == "Apache-2.0"
    assert found["alipes"].ours and not found["numpy"].ours
    assert "BSD" in found["numpy"].licence
    assert all(one.version for one in found.values())


@pytest.mark.parametrize(
    ("extras", "more", "words", "hint"),
    [
        (("sklern",), (), "no extra 'sklern'", "sklearn"),
        ((), ("no-such-package",), "no-such-package is not installed", "pip install"),
    ],
)
def test_what_is_not_here_is_an_error_that_says_what_to_do(
    extras: tuple[str, ...], more: tuple[str, ...], words: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        find_packages(extras, more)
    assert hint in str(caught.value.hint)


def test_a_package_that_is_a_link_to_its_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "mine-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (installed / "RECORD").write_text("mine-1.dist-info/METADATA,,\n")
    (installed / "direct_url.json").write_text('{"url": "file:///src", "dir_info": {"editable": true}}')
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="mine is a link to its sources here"):
        find_packages(more=["mine"])
    (installed / "RECORD").unlink()
    with pytest.raises(ConfigError, match="the list of the files of mine is not here"):
        find_packages(more=["mine"])


def test_python_goes_in_without_its_tests_and_paths_of_here() -> None:
    found = interpreter()
    assert PYTHON in found
    assert any(path.endswith("/os.py") for path in found)
    assert any("/lib-dynload/" in path for path in found)
    parts = {part for path in found for part in path.split("/")}
    assert parts & {"test", "tests", "idlelib", "tkinter", "site-packages", "__pycache__"} == set()
    settings = [entry.read() for path, entry in found.items() if "_sysconfig" in path]
    assert settings
    assert sys.base_prefix in ("/usr", "/usr/local") or not any(sys.base_prefix.encode() in one for one in settings)


@pytest.mark.extra("sklearn")
def test_an_extra_brings_its_packages(names: dict[str, set[str]]) -> None:
    more = {one.name for one in find_packages(["sklearn"])} - names.keys()
    assert more >= {"scikit-learn", "scipy", "skops"}

"""Files and configurations that load requests bring along: what is understood, and where files may lie."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.config.limits import MAX_OVERRIDE_DEPTH, MAX_OVERRIDE_FILES
from alipes.server.failures import LoadFailed
from alipes.server.override import Override, OverrideFolders, read_override

HIDDEN = "failed to load 'm', failed to poll from model repository"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def folders(temporary: Path) -> Iterator[OverrideFolders]:
    made = OverrideFolders()
    yield made
    made.close()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_a_request_without_parameters_overrides_nothing() -> None:
    assert read_override("m", {}) is None


def test_a_configuration_alone_leaves_the_files_to_the_repository() -> None:
    assert read_override("m", {"config": "{}"}) == Override("{}")


def test_files_are_decoded() -> None:
    parameters = {"config": "{}", "file:1/model.onnx": encoded(b"\0onnx"), "file:empty": ""}
    assert read_override("m", parameters) == Override("{}", {"1/model.onnx": b"\0onnx", "empty": b""})


@pytest.mark.parametrize(
    ("parameters", "code", "text"),
    [
        ({"color": "red"}, "INVALID_ARG", "unrecognized load parameter 'color'."),
        ({"config": 1}, "INVALID_ARG", "load parameter 'config' must be a string"),
        ({"file:1/model.onnx": "AA=="}, "INTERNAL", HIDDEN),
        ({"config": "{}", "file:x": "no base64"}, "INVALID_ARG", "load parameter 'file:x' must be base64"),
        ({"config": "{}", "file:x": "\u00e9"}, "INVALID_ARG", "load parameter 'file:x' must be base64"),
    ],
)
def test_a_parameter_that_is_not_understood_is_named(parameters: dict[str, object], code: str, text: str) -> None:
    with pytest.raises(LoadFailed) as failure:
        read_override("m", parameters)
    assert failure.value.code == code
    assert str(failure.value).startswith(text)


def test_the_number_of_files_is_bounded() -> None:
    parameters = {"config": "{}"} | {f"file:{number}": "" for number in range(MAX_OVERRIDE_FILES)}
    assert len((read_override("m", parameters) or Override("")).files) == MAX_OVERRIDE_FILES
    with pytest.raises(LoadFailed) as failure:
        read_override("m", parameters | {"file:more": ""})
    assert f"more than the limit of {MAX_OVERRIDE_FILES}" in failure.value.reason


def test_a_folder_holds_the_files_and_nothing_else(folders: OverrideFolders) -> None:
    made = folders.make("m", {"1/model.onnx": b"onnx", "./2//deep/../model.onnx": b"two"})
    assert (made.name, made.path.name) == ("m", "m")
    files = {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    assert files == {"1/model.onnx": b"onnx", "2/model.onnx": b"two"}


@pytest.mark.parametrize("slashes", ["/", "//", "/./", "///"])
def test_a_path_begins_in_the_folder_whether_with_a_slash_or_not(folders: OverrideFolders, slashes: str) -> None:
    made = folders.make("m", {f"{slashes}1/model.onnx": b"onnx", f"{slashes}etc/passwd": b"no secret"})
    files = {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    assert files == {"1/model.onnx": b"onnx", "etc/passwd": b"no secret"}


def test_a_path_may_not_be_too_deep(folders: OverrideFolders) -> None:
    with pytest.raises(LoadFailed) as failure:
        folders.make("m", {"/" + "a/b/" * MAX_OVERRIDE_DEPTH + "c": b""})
    assert f"at most {MAX_OVERRIDE_DEPTH} names" in failure.value.reason


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "/", "//", "../x", "/../x", "//../x", "1/../../x", "/1/../../x", "1/", "/1/", "a/../..", "x\0y"],
)
def test_no_path_leads_out_of_the_folder(folders: OverrideFolders, temporary: Path, path: str) -> None:
    with pytest.raises(LoadFailed, match=HIDDEN) as failure:
        folders.make("m", {"1/model.onnx": b"", path: b"evil"})
    assert "expected a file inside the model's folder" in failure.value.reason
    assert [place for place in temporary.rglob("*") if place.is_file() and place.name != ".lock"] == []


def test_the_deepest_path_is_allowed(folders: OverrideFolders) -> None:
    path = "/".join(["d"] * (MAX_OVERRIDE_DEPTH - 1) + ["file"])
    assert (folders.make("m", {path: b"x"}).path / path).read_bytes() == b"x"


@pytest.mark.parametrize("name", ["../m", "", "a/b", "."])
def test_no_name_leads_out_of_the_folder(folders: OverrideFolders, name: str) -> None:
    with pytest.raises(LoadFailed):
        folders.make(name, {"1/model.onnx": b""})


@pytest.mark.parametrize("files", [{"a": b"", "a/b": b""}, {"x" * 300: b""}, {"\ud800": b""}])
def test_files_that_cannot_be_written_are_refused(folders: OverrideFolders, files: dict[str, bytes]) -> None:
    with pytest.raises(LoadFailed) as failure:
        folders.make("m", files)
    assert "cannot write the files of the request" in failure.value.reason


def test_only_its_own_folders_are_removed(folders: OverrideFolders, temporary: Path) -> None:
    made = folders.make("m", {"x": b""})
    folders.remove(temporary)
    assert made.path.exists()
    folders.remove(made.path)
    assert not made.path.exists()


def test_folders_of_a_server_that_was_killed_go_with_the_next_one(temporary: Path) -> None:
    left = temporary / "alipes-load-left"
    left.mkdir()
    (left / ".lock").touch()
    one, other = OverrideFolders(), OverrideFolders()
    files = one.make("m", {"x": b""})
    other.make("m", {"x": b""})
    assert not left.exists()
    assert files.path.exists(), "its server lives"
    one.close()
    other.close()
    assert list(temporary.iterdir()) == []


def test_what_is_written_is_for_this_user_alone(folders: OverrideFolders, temporary: Path) -> None:
    folders.make("m", {"x": b""})
    assert [oct(path.stat().st_mode & 0o777) for path in temporary.iterdir()] == ["0o700"]

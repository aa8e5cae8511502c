"""Which files of a store are wanted, by the variables of KServe's storage initializer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.model_store import ModelStore
from alipes.repository.storage.patterns import Patterns, read_patterns
from alipes.repository.storage.selection import Selection

Chosen = Callable[..., Selection]


@pytest.fixture
def chosen(request: pytest.FixtureRequest) -> Chosen:
    def make(*allowed: str, ignored: tuple[str, ...] = ()) -> Selection:
        selection = Selection(Patterns(allowed, ignored))
        request.addfinalizer(selection.close)
        return selection

    return make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "digits"
    for name in ("model.onnx", "weights.bin", "more/labels.txt", ".git/config"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    yield folder


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("", ()),
        ("[]", ()),
        ('["*.onnx", " *.json "]', ("*.onnx", "*.json")),
        ("*.onnx, *.json,", ("*.onnx", "*.json")),
        ('"*.onnx"', ("*.onnx",)),
        ("[broken", ("[broken",)),
        ("onnx/", ("onnx/*",)),
    ],
)
def test_patterns_are_an_array_or_stand_between_commas(text: str, patterns: tuple[str, ...]) -> None:
    assert read_patterns({"STORAGE_ALLOW_PATTERNS": text}) == Patterns(allowed=patterns)
    assert read_patterns({"STORAGE_IGNORE_PATTERNS": text}) == Patterns(ignored=patterns)


@pytest.mark.parametrize(
    ("allowed", "ignored", "admitted"),
    [
        ((), (), ["a.onnx", "b/a.onnx", "b/c.bin", "README"]),
        (("*.onnx",), (), ["a.onnx", "b/a.onnx"]),
        (("b/*",), (), ["b/a.onnx", "b/c.bin"]),
        ((), ("*.bin", "README"), ["a.onnx", "b/a.onnx"]),
        (("*.onnx", "*.bin"), ("b/*.onnx",), ["a.onnx", "b/c.bin"]),
        (("?.onnx",), (), ["a.onnx"]),
        (("A.ONNX",), (), []),
    ],
)
def test_a_file_matches_one_pattern_and_none_of_the_others(
    allowed: tuple[str, ...], ignored: tuple[str, ...], admitted: list[str]
) -> None:
    patterns = Patterns(allowed, ignored)
    assert [path for path in ("a.onnx", "b/a.onnx", "b/c.bin", "README") if patterns.admit(path)] == admitted


def test_wanted_files_are_links_in_a_folder_of_the_same_name(chosen: Chosen, store: Path) -> None:
    selection = chosen("*.onnx", "*.txt")
    folder = selection.of(store)
    assert (folder.name, names(folder), selection.left_out) == ("digits", ["model.onnx", "more/labels.txt"], 1)
    assert (folder / "model.onnx").samefile(store / "model.onnx")
    (store / "model.onnx").unlink()
    (store / "more/labels.txt").unlink()
    (store / "other.onnx").write_text("new")
    assert selection.of(store) == folder
    assert names(folder) == ["other.onnx"] and not (folder / "more").exists()
    selection.close()
    assert not folder.exists() and (store / "other.onnx").exists()


def test_a_store_without_patterns_is_its_own_selection(chosen: Chosen, store: Path) -> None:
    assert chosen().of(store) == store
    assert chosen("*.bin").of(store / "model.onnx") == store / "model.onnx"


def test_links_of_config_maps_and_circles_are_files_once(chosen: Chosen, tmp_path: Path) -> None:
    version = tmp_path / "m" / "..2026"
    version.mkdir(parents=True)
    (version / "model.onnx").write_text("one")
    (tmp_path / "m" / "..data").symlink_to("..2026")
    (tmp_path / "m" / "model.onnx").symlink_to("..data/model.onnx")
    (tmp_path / "m" / "again").symlink_to(".")
    folder = chosen("*.onnx").of(tmp_path / "m")
    assert (names(folder), (folder / "model.onnx").read_text()) == (["model.onnx"], "one")


def test_patterns_choose_among_several_models_of_a_folder(store: Path) -> None:
    (store / "second.onnx").write_text("two")
    one = ModelStore(store, patterns=read_patterns({"STORAGE_IGNORE_PATTERNS": json.dumps(["model.onnx"])}))
    one.check()
    one.refresh()
    folder = one.folder_of("digits")
    assert folder is not None
    assert (folder / "1" / "second.onnx").read_text() == "two"
    assert not (folder / "1" / "model.onnx").exists()
    one.close()


def test_a_store_of_which_nothing_is_wanted_says_why(store: Path) -> None:
    one = ModelStore(store, patterns=Patterns(allowed=("*.xml",)))
    for look in (one.check, one.refresh):
        with pytest.raises(RepositoryError, match="STORAGE_ALLOW_PATTERNS and STORAGE_IGNORE_PATTERNS say which"):
            look()
    one.close()

"""Inputs are files: those that patterns match, or what arrays and functions are written into."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.batch.formats.base import Wanted
from alipes.batch.inputs import find_files, is_in_memory, write_rows
from alipes.batch.rows import ModelRows
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import ConfigError

ROWS = ModelRows(
    Signature("m", {"X": TensorSpec("X", "FP32", (-1, 2))}, {}, frozenset({"X"})), 4, Wanted({"X": 2}, frozenset({"X"}))
)


def names(inputs: Any) -> list[str]:
    return [Path(name).name for name, _, _ in find_files(inputs)[1]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name in ("b.npy", "a.npy", "c.jsonl", "notes.txt", "odd[1].npy"):
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "in" / "d.npy").write_bytes(b"22")
    return tmp_path


def test_files_are_in_the_order_of_patterns_and_names_each_once(data: Path) -> None:
    assert names([str(data / "c*"), str(data / "*.npy"), data / "a.npy"]) == ["c.jsonl", "a.npy", "b.npy", "odd[1].npy"]
    assert names(str(data / "**" / "*.npy")) == ["a.npy", "b.npy", "d.npy", "odd[1].npy"]


def test_a_folder_is_its_files_of_known_kinds(data: Path) -> None:
    assert names(data) == ["a.npy", "b.npy", "c.jsonl", "odd[1].npy"]


def test_a_name_with_brackets_is_that_file(data: Path) -> None:
    assert names(str(data / "odd[1].npy")) == ["odd[1].npy"]


def test_relative_names_refer_to_the_folder_that_is_noted(data: Path) -> None:
    with contextlib.chdir(data):
        assert find_files("in/*.npy")[0] == str(data)
    assert find_files(str(data / "*.npy"))[0] == ""


def test_a_pattern_without_a_file_is_refused(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file matches .*none\*"):
        find_files(str(data / "none*"))


def test_a_file_of_an_unknown_kind_is_refused(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"notes\.txt: files whose names end in"):
        find_files([data / "notes.txt"])


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("a.npy", False),
        (["a.npy", Path("b.npy")], False),
        (Path("a"), False),
        ("module.part:function", True),
        (np.zeros(3), True),
        ({"X": [1]}, True),
        (lambda: [], True),
        ([[1, 2]], True),
    ],
)
def test_arrays_and_functions_are_no_files(inputs: Any, expected: bool) -> None:
    assert is_in_memory(inputs) is expected


def held(files: list[Path]) -> np.ndarray[Any, Any]:
    parts = []
    for file in files:
        with np.load(file) as archive:
            parts.append(archive["X"])
    return np.concatenate(parts)


def test_what_a_function_yields_is_written_in_its_order(tmp_path: Path) -> None:
    def yields() -> Iterator[Any]:
        yield [1, 2]
        yield {"X": [[3, 4], [5, 6]]}
        yield np.array([7.0, 8.0])

    files = write_rows(yields, tmp_path / "inputs", ROWS)
    assert held(files).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert [entry.name for entry in tmp_path.iterdir()] == ["inputs"]


def test_a_large_array_is_several_files(tmp_path: Path) -> None:
    array = np.arange(3 << 20, dtype=np.float32).reshape(-1, 2)
    files = write_rows(array, tmp_path / "inputs", ROWS)
    assert len(files) == 2
    assert np.array_equal(held(files), array)


def test_a_function_is_found_by_its_module_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "batch_rows_of_mine.py").write_text("def rows():\n    yield [1, 2]\n")
    with contextlib.chdir(tmp_path):
        assert held(write_rows("batch_rows_of_mine:rows", tmp_path / "inputs", ROWS)).tolist() == [[1, 2]]
        with pytest.raises(ConfigError, match="batch_rows_of_mine:other is no function"):
            write_rows("batch_rows_of_mine:other", tmp_path / "inputs", ROWS)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([[1, 2, 3]], r"item 0 of the inputs does not fit the model: 'X' has the shape \[1, 3\]"),
        ([{"Y": [1, 2]}], "item 0 .*the model takes X, and it has Y"),
        ([], "there are no rows"),
        (3, "expected patterns of files, an array"),
    ],
)
def test_what_does_not_fit_leaves_nothing_behind(tmp_path: Path, inputs: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        write_rows(inputs, tmp_path / "inputs", ROWS)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "inputs"] == []

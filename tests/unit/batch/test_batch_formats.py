"""Rows of files come back as they were written, whole and in parts, and what is no file says why."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.batch.formats.base import WHOLE, Wanted
from alipes.batch.formats.find import FORMS, file_format
from alipes.batch.formats.pictures import pixels
from alipes.errors import ConfigError, Unsupported
from PIL import Image

ROWS = np.arange(6000, dtype=np.float32).reshape(-1, 3)
ONE = Wanted({"X": 2}, frozenset({"X"}))
TWO = Wanted({"X": 2, "N": 1}, frozenset({"X", "N"}))
NUMBERS = np.arange(len(ROWS), dtype=np.int64)


def read(path: Path, wanted: Wanted, unit_bytes: int) -> tuple[int, dict[str, np.ndarray[Any, Any]]]:
    """Everything that the parts of a file hold, and how many parts there are."""
    kind = file_format(path)
    parts = kind.parts(path, unit_bytes, wanted)
    blocks = [block.arrays for part in parts for block in kind.read(path, part, wanted)]
    return len(parts), {name: np.concatenate([block[name] for block in blocks]) for name in wanted.ranks}


@pytest.mark.parametrize("end", ["npz", "jsonl"])
def test_parts_of_a_file_are_the_file(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"rows.{end}"
    file_format(path).write(path, {"X": ROWS, "N": NUMBERS})
    for unit_bytes in (1, 1000, 1 << 30):
        count, arrays = read(path, TWO, unit_bytes)
        assert np.array_equal(arrays["X"], ROWS)
        assert np.array_equal(arrays["N"], NUMBERS)
        assert count == {1: len(ROWS), 1 << 30: 1}.get(unit_bytes, count)
        assert unit_bytes != 1000 or 10 < count < len(ROWS)


def test_parts_of_an_array_are_the_array(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, ROWS)
    count, arrays = read(path, ONE, 500)
    assert count == ROWS.nbytes // 500
    assert np.array_equal(arrays["X"], ROWS)


@pytest.mark.parametrize("array", [np.asfortranarray(ROWS), ROWS[0]])
def test_what_has_no_outer_axis_of_rows_stays_whole(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, array)
    count, arrays = read(path, ONE, 1)
    assert count == 1
    assert np.array_equal(arrays["X"], array)


def test_a_compressed_archive_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=ROWS, N=NUMBERS, other=ROWS)
    count, arrays = read(path, TWO, 1)
    assert count == 1
    assert np.array_equal(arrays["X"], ROWS)


def test_an_archive_without_names_is_for_the_only_input(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, ROWS)
    assert np.array_equal(read(path, ONE, 1)[1]["X"], ROWS)


@pytest.mark.parametrize(
    ("content", "wanted", "reason"),
    [
        (b"junk", ONE, "magic"),
        (b"", ONE, "EOF"),
        (np.array([{}]), ONE, "objects of Python"),
        (ROWS, TWO, "its values have no names, and the model takes N, X"),
    ],
)
def test_an_array_that_cannot_be_read_says_why(tmp_path: Path, content: Any, wanted: Wanted, reason: str) -> None:
    path = tmp_path / "rows.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(ValueError, match=reason):
        list(file_format(path).read(path, WHOLE, wanted))


def test_an_array_that_was_cut_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, ROWS)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="it ends after 23999 of 24000 bytes"):
        list(file_format(path).read(path, WHOLE, ONE))


def test_headers_that_are_alike_are_of_their_own_files(tmp_path: Path) -> None:
    wanted = Wanted({"x": 2}, frozenset({"x"}))
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((2, 2), number, np.float32))
    np.save(tmp_path / "3.npy", np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)))
    found = [
        next(iter(file_format(f"{number}.npy").read(tmp_path / f"{number}.npy", WHOLE, wanted))).arrays["x"].tolist()
        for number in range(4)
    ]
    assert found == [[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[2, 2], [2, 2]], [[0, 1], [2, 3]]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x93NUMPY\x01\x00\x76", "ends within its header"),
        (b"\x93NUMPY\x01\x00\x76\x00{'descr'", "EOF"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "its header has 2147483647 bytes"),
        (b"\x93NUMPY\x03\x00", "version 3.0"),
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        list(file_format("a.npy").read(tmp_path / "a.npy", WHOLE, Wanted({"x": 2}, frozenset({"x"}))))


def test_an_archive_without_an_input_names_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, X=ROWS, M=NUMBERS)
    with pytest.raises(ValueError, match="the model takes N, and it has M, X"):
        list(file_format(path).read(path, WHOLE, TWO))


def test_a_line_that_is_none_is_broken_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"X": [1, 2]}\n\n{"X": \n[3, 4]\n{"Y": 1}\n')
    blocks = list(file_format(path).read(path, WHOLE, ONE))
    assert [block.arrays["X"].tolist() for block in blocks if not block.broken] == [[[1, 2]], [[3, 4]]]
    assert [bool(block.broken) for block in blocks] == [False, True, False, True]
    assert blocks[3].broken == "the model takes X, and it has Y"


def test_texts_are_bytes_of_one_length_in_files_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "texts.npz"
    FORMS["npz"].write(path, {"Y": np.array(["a", b"long"], object)})
    with np.load(path) as held:
        assert held["Y"].tolist() == [b"a", b"long"]
    with pytest.raises(ValueError, match="ends with a zero byte"):
        FORMS["npz"].write(path, {"Y": np.array([b"a\0"], object)})


def test_rows_of_different_shapes_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "ragged.jsonl"
    column = np.empty(2, object)
    column[0], column[1] = np.array([1.5]), np.array([2, 3])
    FORMS["jsonl"].write(path, {"Y": column, "word": np.array([b"one", b"two"], object)})
    assert path.read_text().splitlines() == ['{"Y": [1.5], "word": "one"}', '{"Y": [2, 3], "word": "two"}']


def test_an_unknown_end_of_a_name_is_refused_with_those_that_are_read() -> None:
    with pytest.raises(ConfigError, match=r"data\.csv: files whose names end in \.npz, \.npy, .* are read"):
        file_format("data.csv")


def test_results_are_no_single_pictures(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="write zip, npz, npy, h5, parquet or jsonl"):
        file_format("a.png").write(tmp_path / "a.png", {"Y": ROWS})


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (1, 4, 6), (4, 6, 3), (3, 4, 6)])
def test_pictures_of_an_archive_are_the_rows(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (5, *shape), np.uint8)
    archive = file_format("a.zip")
    archive.write(tmp_path / "a.zip", {"Y": rows})
    blocks = list(archive.read(tmp_path / "a.zip", WHOLE, Wanted({"Y": 0}, frozenset("Y"))))
    assert np.array_equal([pixels(bytes(block.arrays["Y"][0]), shape) for block in blocks], rows)
    contents = np.array([[bytes(block.arrays["Y"][0])] for block in blocks], object)
    archive.write(tmp_path / "b.zip", {"Y": contents})
    assert (tmp_path / "b.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()


def test_what_is_no_picture_is_not_written_as_one(tmp_path: Path) -> None:
    for rows, reason in (
        (np.ones((2, 4, 6), np.float32), "float32 rows of the shape"),
        (np.ones((2, 7), np.uint8), r"uint8 rows of the shape \[7\]"),
        (np.array([[b"a", b"b"]], object), "a row has 2 texts"),
    ):
        with pytest.raises(ValueError, match=reason):
            file_format("a.zip").write(tmp_path / "a.zip", {"Y": rows})


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((-1, -1, 3), (4, 6, 3)), ((3, -1, -1), (3, 4, 6)), ((-1, -1), (4, 6)), ((1, 4, 6), (1, 4, 6))],
)
def test_pixels_are_in_the_order_that_the_model_has(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    content = io.BytesIO()
    Image.new("RGB", (6, 4), (10, 20, 30)).save(content, "PNG")
    assert pixels(content.getvalue(), shape).shape == expected


def test_a_damaged_picture_says_so() -> None:
    with pytest.raises(ValueError, match="it is no picture that can be read"):
        pixels(b"\x89PNG junk", (-1, -1, 3))

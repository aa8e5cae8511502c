"""HDF5 and Parquet, by their own libraries: parts of a file are the file, and results can be read anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.batch.formats.base import WHOLE, Wanted
from alipes.batch.formats.find import FORMS, file_format

pytestmark = pytest.mark.extra("batch")

ROWS = np.arange(6000, dtype=np.float32).reshape(-1, 3)
NUMBERS = np.arange(len(ROWS), dtype=np.int64)
WORDS = np.array([f"word {number % 7}" for number in NUMBERS], object)
THREE = Wanted({"X": 2, "N": 1, "word": 1}, frozenset({"X", "N", "word"}))


@pytest.mark.parametrize("end", ["h5", "parquet"])
@pytest.mark.parametrize("unit_bytes", [1000, 1 << 30])
def test_a_table_is_read_as_it_was_written(tmp_path: Path, end: str, unit_bytes: int) -> None:
    path = tmp_path / f"rows.{end}"
    file_format(path).write(path, {"X": ROWS, "N": NUMBERS, "word": WORDS, "other": ROWS})
    kind = file_format(path)
    parts = kind.parts(path, unit_bytes, THREE)
    blocks = [block.arrays for part in parts for block in kind.read(path, part, THREE)]
    assert len(parts) > 1 or unit_bytes > 1000 or end == "parquet"
    found = {name: np.concatenate([block[name] for block in blocks]) for name in THREE.ranks}
    assert np.array_equal(found["X"], ROWS)
    assert np.array_equal(found["N"], NUMBERS)
    texts = [text if isinstance(text, str) else text.decode() for text in found["word"]]
    assert texts == WORDS.tolist()


def test_groups_of_rows_are_parts(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"X": ROWS.tolist()})
    pyarrow.parquet.write_table(table, path, row_group_size=500)
    wanted = Wanted({"X": 2}, frozenset({"X"}))
    parts = file_format(path).parts(path, 1, wanted)
    assert parts == [(0, 1), (1, 2), (2, 3), (3, 4)]
    blocks = [block for part in parts for block in file_format(path).read(path, part, wanted)]
    assert np.array_equal(np.concatenate([block.arrays["X"] for block in blocks]), ROWS)


@pytest.mark.parametrize(
    ("rows", "reason"), [([[1.0], [2.0, 3.0]], "differ in length"), ([[1.0], None], "has 1 empty cells")]
)
def test_a_column_that_is_no_array_says_why(tmp_path: Path, rows: Any, reason: str) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"X": rows}), path)
    with pytest.raises(ValueError, match=reason):
        list(file_format(path).read(path, WHOLE, Wanted({"X": 2}, frozenset({"X"}))))


def test_the_only_dataset_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.h5"
    FORMS["h5"].write(path, {"strain": ROWS})
    (block,) = file_format(path).read(path, (10, 20), Wanted({"X": 2}, frozenset({"X"})))
    assert np.array_equal(block.arrays["X"], ROWS[10:20])


def test_a_damaged_file_raises(tmp_path: Path) -> None:
    for end in ("h5", "parquet"):
        path = tmp_path / f"rows.{end}"
        path.write_bytes(b"junk")
        with pytest.raises(Exception, match=r"signature not found|footer|magic"):
            list(file_format(path).read(path, WHOLE, THREE))

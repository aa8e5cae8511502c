"""Results as files."""

from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from alipes import ConfigError, Unsupported
from alipes.loadtest.save import check_path
from support.load_windows import report


def test_csv_has_a_line_for_each_level(tmp_path: Path) -> None:
    file = tmp_path / "levels.csv"
    report().save(file)
    with file.open(newline="") as lines:
        first, second = csv.DictReader(lines)
    assert (first["load"], first["answers"], first["p50_ms"], first["is_settled"]) == ("1", "303", "11.0", "True")
    assert float(first["rate"]) == 101
    assert (second["rate"], second["rate_low"], second["failed"]) == ("200.0", "", "3")


def test_json_says_null_where_nothing_is_known(tmp_path: Path) -> None:
    file = tmp_path / "levels.json"
    report().save(file)
    first, second = json.loads(file.read_text(), parse_constant=pytest.fail)["levels"]
    assert first["rate_low"] < 101 < first["rate_high"]
    assert second["rate_low"] is None
    assert second["notes"] == ["3 failed: </script> refused"]


def test_windows_are_rows_too() -> None:
    rows = report().window_rows()
    assert [row["is_used"] for row in rows] == [False, True, True, True, True]
    assert [row["rate"] for row in rows] == [50, 100, 101, 102, 200]
    assert len({tuple(row) for row in rows}) == 1


@pytest.mark.parametrize("name", ["levels", "levels.txt", "levels.CSV"])
def test_a_name_without_a_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.csv, \.parquet, \.json, \.html, \.png, \.svg or \.pdf"):
        report().save(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        check_path(tmp_path / "nowhere" / "levels.csv")


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [("a.parquet", "pyarrow", "tables"), ("a.html", "matplotlib", "plots"), ("a.png", "matplotlib", "plots")],
)
def test_what_a_format_needs_is_named(tmp_path: Path, name: str, library: str, extra: str) -> None:
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    with pytest.raises(Unsupported, match=rf"need {library}: install it with `pip install 'alipes\[{extra}\]'`"):
        check_path(tmp_path / name)


def test_there_is_no_table_of_anything_else() -> None:
    with pytest.raises(ConfigError, match="there is no table 'days': expected levels or windows or shares"):
        report().to_pandas("days")

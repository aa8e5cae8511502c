"""The file of a monitor, byte by byte and back."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from alipes.errors import MonitorError
from alipes.monitor import read_rows
from alipes.monitor.columns import DURATIONS, chosen
from alipes.monitor.files import header, write_rows
from alipes.monitor.ledger import Row

ROW = Row(1663720000.25, "localhost", "snapshotter", 1, 16, dict(zip(DURATIONS, (1, 2, 3, 4, 5), strict=True)))
NINE = "timestamp,ip,model,count,queue,compute_input,compute_infer,compute_output,request"


def test_a_record_has_nine_columns_and_each_row_ends_the_line_before() -> None:
    file = io.StringIO()
    file.write(header(()))
    write_rows(file, [ROW, ROW], ())
    line = "1663720000.25,localhost,snapshotter,16,1,2,3,4,5"
    assert file.getvalue() == f"{NINE}\n{line}\n{line}"


def test_further_columns_follow_the_nine() -> None:
    columns = chosen(["version", "cpu_utilization"])
    file = io.StringIO()
    file.write(header(columns))
    write_rows(file, [Row(1.0, "a", "m", 2, 1, ROW.durations_us, {"version": 2.0, "cpu_utilization": 0.5})], columns)
    assert file.getvalue() == f"{NINE},version,cpu_utilization\n1.0,a,m,1,1,2,3,4,5,2,0.5"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    row = Row(1.5, 'a "b", c', "m,n", 3, 1, ROW.durations_us, {"version": 3.0})
    with (tmp_path / "record.csv").open("w", newline="") as file:
        file.write(header(chosen(["version"])))
        write_rows(file, [row, row], chosen(["version"]))
    assert read_rows(tmp_path / "record.csv") == [row, row]


@pytest.mark.parametrize("text", ["", "a,b\n1,2", f"{NINE}\n1,2,3", f"{NINE}\n1,a,m,x,1,1,1,1,1"])
def test_a_file_that_is_no_record_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text(text)
    with pytest.raises(MonitorError, match=r"other\.csv"):
        read_rows(tmp_path / "other.csv")


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(MonitorError, match="there is no column speed: there are version"):
        chosen(["speed"])
    assert [column.name for column in chosen(["timestamp", "pending"])] == ["pending"]
    assert len(chosen("all")) > 5

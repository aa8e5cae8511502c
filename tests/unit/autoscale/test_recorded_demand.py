"""Recorded requests: counts, rates, single requests, payload logs, and what is none of these."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alipes.autoscale import read_demand
from alipes.errors import ConfigError


def written(tmp_path: Path, text: str, name: str = "day.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_counts_are_spread_until_the_next_time(tmp_path: Path) -> None:
    day = read_demand(written(tmp_path, "time,count\n0,4\n2,6\n4,0\n"))
    assert list(day) == [2, 2, 3, 3, 0, 0]


def test_rates_go_in_straight_lines(tmp_path: Path) -> None:
    day = read_demand(written(tmp_path, "time,rate\n10,0\n14,8\n"))
    assert list(day) == [1, 3, 5, 7]


def test_times_alone_are_requests(tmp_path: Path) -> None:
    text = "time\n2026-01-31T08:00:00.900\n2026-01-31T08:00:03.1\n2026-01-31T08:00:00.2\n"
    assert list(read_demand(written(tmp_path, text))) == [2, 0, 0, 1]


def test_a_payload_log_gives_its_requests(tmp_path: Path) -> None:
    kinds = ["org.kubeflow.serving.inference.request", "org.kubeflow.serving.inference.response"] * 2
    rows = [{"reqType": kind, "occurrenceTime": f"2026-01-31T08:00:0{second}Z"} for second, kind in enumerate(kinds)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert list(read_demand(written(tmp_path, text, "log.jsonl"))) == [1, 0, 1]


def test_lines_of_json_may_have_counts(tmp_path: Path) -> None:
    text = '{"time": 0, "count": 1}\n\n{"time": 1, "count": 5}\n'
    assert list(read_demand(written(tmp_path, text, "day.jsonl"))) == [1, 5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,4\n2,6\n", "has no column of times"),
        ("", "has no column of times"),
        ("time,count\n", "it has no request"),
        ("time,count\n0,x\n", "line 2 of .* has no time, or no number"),
        ("time,count\n0,-1\n", "has the number -1"),
        ("time,count\n0,inf\n", "has the number inf"),
        ("time,count\nnan,1\n", "line 2 of"),
        ("time,count\n0,1\n0,1\n", "two times at least, which ascend"),
        ("time,count\n0,1\n", "two times at least"),
        ("time,count\n0,1\n1,\n", "some lines have a number and others have none"),
        ("time\n0\n99999999\n", "spans 1157.4 days, more than 8"),
        ("time\nyesterday\n", "line 2 of .* has no time"),
    ],
)
def test_what_is_no_record_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_demand(written(tmp_path, text))


@pytest.mark.parametrize(("line", "words"), [("{", "no JSON"), ("[1]", "no JSON object"), ('{"a": 1}', "no time")])
def test_a_line_that_is_no_object_is_an_error(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_demand(written(tmp_path, f"{line}\n", "day.jsonl"))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_demand(tmp_path / "none.csv")
    binary = tmp_path / "day.csv"
    binary.write_bytes(b"time,count\n\xff\xfe\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_demand(binary)

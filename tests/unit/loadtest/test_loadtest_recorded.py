"""Rates of a recorded day."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import ConfigError
from alipes.loadtest import Open


def written(folder: Path, text: str) -> Path:
    file = folder / "day.csv"
    file.write_text(text)
    return file


def test_hours_become_seconds(tmp_path: Path) -> None:
    file = written(tmp_path, "time,rate\n0,10\n3600,50\n10800,0\n")
    pace = Open.recorded(file, compress=3600, scale=2)
    assert pace.pieces == ((1, 20, 100), (2, 100, 0))
    assert pace.value == pytest.approx((60 + 100) / 3)
    assert (pace.seed, str(pace)) == (0, "0 to 100/s random")


def test_times_may_be_dates(tmp_path: Path) -> None:
    file = written(
        tmp_path, "2026-03-01T08:00:00+00:00,10\n2026-03-01T09:00:00+01:00,20\n2026-03-01T08:30:00+00:00,5\n"
    )
    with pytest.raises(ConfigError, match="do not ascend"):
        Open.recorded(file)
    file = written(tmp_path, "2026-03-01T08:00:00Z, 10\n2026-03-01T08:01:00Z, 20\n")
    assert Open.recorded(file, seed=None).pieces == ((60, 10, 20),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds 0 rates"),
        ("time,rate\n1,2\n", "holds 1 rates"),
        ("0,1\n1,soon\n", "line 2 of .* is '1,soon'"),
        ("0,1\n1,-2\n", "line 2 of .* has the rate -2.0"),
        ("0,1\n1,inf\n", "line 2 of .* has the rate inf"),
        ("0,1\n1\n", "line 2"),
        ("0,0\n1,0\n", "all rates"),
        ("0,1\nnan,1\n", "do not ascend"),
        ("0,1\n" * 100_001, "more than 100,000"),
    ],
)
def test_files_without_rates_are_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Open.recorded(written(tmp_path, text))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Open.recorded(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="above 0"):
        Open.recorded(written(tmp_path, "0,1\n1,1\n"), compress=0)

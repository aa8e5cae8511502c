"""What is recorded of a soak, and what its slopes are taken for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.soak.finding import Finding, findings
from support.soak.picture import svg
from support.soak.record import COLUMNS, FILE, Record, Sample, Writer
from support.soak.series import MIB, SERIES, warm_up_s
from support.soak.table import table

ROOT = Path(__file__).parents[2]


def sample(seconds: float, **changes: float | None) -> Sample:
    """A server that takes the same in every second, but for the changes."""
    even: Sample = {name: 10.0 for name in COLUMNS if name != "run"}
    return even | {"seconds": seconds} | changes


def write(folder: Path, seconds: int, **per_hour: float) -> None:
    """A run in which columns grow, with noise that is small beside it."""
    noise = np.random.default_rng(1).standard_normal(seconds)
    with Writer(folder) as writer:
        for second in range(seconds):
            grown = {name: 1e9 + slope * (second / 3600 + noise[second] / 1e3) for name, slope in per_hour.items()}
            writer.add(sample(second, **grown))


def found_in(folder: Path) -> list[Finding]:
    record = Record.read(folder)
    return findings(record, warm_up_s(record.seconds))


def verdicts(folder: Path) -> dict[str, str]:
    return {finding.series.name: finding.verdict for finding in found_in(folder)}


def test_what_grows_is_named_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, 3600, server_bytes=100 * MIB, http_p99_s=1e6)
    assert {name for name, verdict in verdicts(tmp_path).items() if verdict == "grows"} == {"server_bytes"}


def test_growth_within_the_tolerance_is_none(tmp_path: Path) -> None:
    write(tmp_path, 3600, server_bytes=20 * MIB)
    (found, *_) = found_in(tmp_path)
    assert found.slope is not None
    assert found.slope.low > 0
    assert found.verdict == "flat"


def test_a_server_that_shrinks_does_not_grow(tmp_path: Path) -> None:
    write(tmp_path, 600, server_bytes=-1000 * MIB, descriptors=-100)
    assert "grows" not in verdicts(tmp_path).values()


@pytest.mark.parametrize(("seconds", "still_grows"), [(200, 120), (400, 120), (4000, 1000)])
def test_growth_in_the_warm_up_does_not_count(tmp_path: Path, seconds: int, still_grows: int) -> None:
    with Writer(tmp_path) as writer:
        for second in range(seconds):
            writer.add(sample(second, server_bytes=min(second, still_grows) * 10.0 * MIB))
    assert set(verdicts(tmp_path).values()) == {"flat", "not judged"}


def test_a_run_within_its_warm_up_is_too_short(tmp_path: Path) -> None:
    write(tmp_path, 120, server_bytes=100_000 * MIB)
    assert set(verdicts(tmp_path).values()) == {"too short", "not judged"}
    judged = findings(Record.read(tmp_path), warm_up_s=20)
    assert {finding.series.name for finding in judged if finding.verdict == "grows"} == {"server_bytes"}


def test_a_further_run_is_added_and_is_what_is_read(tmp_path: Path) -> None:
    write(tmp_path, 100, server_bytes=100_000 * MIB)
    write(tmp_path, 50)
    record = Record.read(tmp_path)
    assert record.seconds == 49
    assert (tmp_path / FILE).read_text().count("run,") == 1
    assert "grows" not in verdicts(tmp_path).values()


def test_a_record_is_read_while_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, 30)
    with (tmp_path / FILE).open("a") as file:
        file.write("1,30.5,12")
    assert Record.read(tmp_path).seconds == 29


def test_a_further_run_begins_a_line_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, 30)
    with (tmp_path / FILE).open("a") as file:
        file.write("1,30.5,12")
    write(tmp_path, 20)
    assert len(Record.read(tmp_path).column("threads")[0]) == 20


def test_a_second_without_answers_has_no_latency(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        for second in range(30):
            writer.add(sample(second, http_p99_s=None if second % 2 else 0.5))
    hours, values = Record.read(tmp_path).column("http_p99_s")
    assert len(hours) == 15
    assert set(values) == {0.5}


@pytest.mark.parametrize("seconds", [0, 1, 5, 2000])
def test_any_length_becomes_a_table_and_a_picture(tmp_path: Path, seconds: int) -> None:
    write(tmp_path, seconds, server_bytes=100_000 * MIB)
    record = Record.read(tmp_path)
    found = found_in(tmp_path)
    assert len(table(found).splitlines()) == 1 + len(SERIES)
    drawn = svg(record, found)
    ElementTree.fromstring(drawn)
    assert all(series.title in drawn for series in SERIES)
    assert ("GROWS" in table(found)) == (seconds == 2000)


def test_the_command_line_draws_what_is_there(tmp_path: Path) -> None:
    write(tmp_path, 600, descriptors=1000)
    command = [sys.executable, "-m", "support.soak", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "GROWS" in done.stdout
    assert (tmp_path / "slopes.txt").read_text() in done.stdout
    ElementTree.parse(tmp_path / "slopes.svg")

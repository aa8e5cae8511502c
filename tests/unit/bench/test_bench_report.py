"""Page, picture and raw data say the same, from the same lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.report import page, picture, raw
from bench.report.lines import lines
from bench.report.run import Run
from bench.results import RowResult
from bench.rows.row import CPU_US, Better, Facts, Sample, Target
from bench.run import Plan


@pytest.fixture
def run() -> Run:
    rates = RowResult(
        Facts(
            "json",
            "JSON & more",
            "requests/s",
            Better.MORE,
            (Target("alipes", "floor", 0.5), Target("alipes", "absent", 5), Target("alipes", "floor")),
        )
    )
    for ours, floor in ((100_000, 200_000), (120_000, 200_000)):
        rates.add("alipes", Sample(ours, {"requests": 7, CPU_US: 20.0}))
        rates.add("floor", Sample(floor, {CPU_US: 10.0 if ours == 100_000 else 15.0}))
    start = RowResult(Facts("start", "Start", "s", Better.LESS, (Target("alipes", None, 0.5),)))
    start.add("alipes", Sample(0.75))
    machine = {"processor": "one, 2 cores"}
    return Run("2026-01-02T03:04:05+00:00", machine, Plan(2, 1.5), [rates, start], {"mosec": "not asked for"})


def test_a_line_for_each_comparison_that_could_be_made(run: Run) -> None:
    found = [(line.of, line.against, line.found, line.to_reach, line.reached) for line in lines(run.results[0])]
    assert found == [
        ("110,000", "floor: 200,000", "0.55 (0.50 to 0.60)", "≥ 0.5", True),
        ("110,000", "floor: 200,000", "0.55 (0.50 to 0.60)", "-", None),
    ]
    assert [line.processor_time for line in lines(run.results[0])] == ["0.62 (0.50 to 0.75)"] * 2
    (line,) = lines(run.results[1])
    assert (line.work, line.found, line.processor_time, line.to_reach, line.reached) == (
        "Start (s)",
        "0.75 (0.75 to 0.75)",
        "-",
        "≤ 0.5 s",
        False,
    )


def test_the_page_holds_the_lines_the_circumstances_and_what_was_left_out(run: Run) -> None:
    text = page.text(run)
    line = "| JSON & more (requests/s) | 110,000 | floor: 200,000 | 0.55 (0.50 to 0.60) | 0.62 (0.50 to 0.75) |"
    assert f"{line} ≥ 0.5 | reached |" in text
    assert "Taken on 2026-01-02, 2 rounds of 1.5 s" in text
    assert "processor one, 2 cores" in text
    assert "Left out: mosec (not asked for)." in text


def test_the_picture_is_valid_and_has_a_bar_for_each_contender(run: Run) -> None:
    picture_text = picture.svg(run)
    root = ElementTree.fromstring(picture_text)
    bars = [float(bar.get("width", 0)) for bar in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert len(bars) == 3
    # Drawn to the greatest figure of the row: 110,000 beside 200,000.
    assert bars[0] / bars[1] == pytest.approx(0.55, abs=0.01)


def test_a_row_that_was_left_out_is_not_drawn(run: Run) -> None:
    drawn = picture.svg(run)
    run.results.append(RowResult(Facts("export", "Export", "s", Better.LESS, ())))
    assert picture.svg(run) == drawn


def test_a_run_of_one_row_keeps_the_others_of_an_earlier_run(run: Run, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(raw.text(run))
    rates, start = run.results
    again = RowResult(start.facts)
    again.add("alipes", Sample(0.25))
    later = replace(run, date="2026-02-03T04:05:06+00:00", results=[again])
    facts = [rates.facts, replace(rates.facts, name="never measured"), start.facts]
    merged = raw.with_rows_of(earlier, later, facts)
    assert merged.results == [replace(rates, date=run.date), again]
    assert "Taken on 2026-01-02: JSON & more." in page.text(merged)
    # And once more: what stays keeps the day on which it was measured.
    earlier.write_text(raw.text(merged))
    assert raw.with_rows_of(earlier, later, facts).results == merged.results


def test_the_raw_data_keeps_every_sample(run: Run) -> None:
    document = json.loads(raw.text(run))
    row = document["rows"][0]
    samples = row["samples"]["alipes"]
    assert samples == [{"value": value, "requests": 7, CPU_US: 20.0} for value in (100_000, 120_000)]
    assert row["comparisons"][0] == {
        "of": "alipes",
        "against": "floor",
        "bound": 0.5,
        "found": [0.5, 0.55, 0.6],
        "processor_time": [0.5, 0.625, 0.75],
        "reached": True,
    }
    assert document["skipped"] == {"mosec": "not asked for"}

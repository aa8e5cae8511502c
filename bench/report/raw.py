"""The raw data of a run, as JSON: every sample of every cell; written, and read again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.paths import RESULTS
from bench.report.run import Run
from bench.results import RowResult, Spread
from bench.rows.row import Facts, Sample, Target


def write(run: Run) -> Path:
    """Writes the run below `bench/results`, named by its date."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{datetime.fromisoformat(run.date):%Y-%m-%d_%H%M%S}.json"
    path.write_text(text(run))
    return path


def text(run: Run) -> str:
    """The run as a JSON document."""
    document = {
        "date": run.date,
        "machine": run.machine,
        "rounds": run.plan.rounds,
        "seconds": run.plan.seconds,
        # What a peer printed further down names folders of this machine.
        "skipped": {name: reason.splitlines()[0] for name, reason in run.skipped.items()},
        "rows": [_row(result) for result in run.results],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def with_rows_of(earlier: Path, run: Run, facts: Sequence[Facts]) -> Run:
    """A run, and the rows of an earlier one that it did not measure, in the order of the table.

    Args:
        earlier: The file of the earlier run.
        run: The later one.
        facts: Every row of the table; what is not among them any more is dropped.
    """
    document = json.loads(earlier.read_text())
    rows = {row["name"]: row for row in document["rows"]}
    measured = {result.facts.name: result for result in run.results}
    results = [
        measured.get(one.name) or _read(one, rows[one.name], document["date"])
        for one in facts
        if one.name in measured or one.name in rows
    ]
    return replace(run, results=results)


def _read(facts: Facts, row: Mapping[str, Any], date: str) -> RowResult:
    samples = {
        label: [
            Sample(one["value"], {key: value for key, value in one.items() if key != "value"}) for one in all_of_them
        ]
        for label, all_of_them in row["samples"].items()
    }
    return RowResult(facts, samples, row.get("date") or date)


def _row(result: RowResult) -> dict[str, object]:
    facts = result.facts
    return {
        "name": facts.name,
        **({"date": result.date} if result.date else {}),
        "title": facts.title,
        "unit": facts.unit,
        "better": facts.better.value,
        "comparisons": [_comparison(result, target) for target in facts.targets],
        "samples": {
            label: [{"value": sample.value, **sample.detail} for sample in samples]
            for label, samples in result.samples.items()
        },
    }


def _comparison(result: RowResult, target: Target) -> dict[str, object]:
    return {
        "of": target.of,
        "against": target.against,
        "bound": target.bound,
        "found": _spread(result.comparison(target)),
        "processor_time": _spread(result.processor_time(target)),
        "reached": result.reached(target),
    }


def _spread(spread: Spread | None) -> Sequence[float] | None:
    return None if spread is None else [spread.least, spread.median, spread.greatest]

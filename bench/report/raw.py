"""The raw data of a run, as JSON: every sample of every cell."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bench.paths import RESULTS
from bench.report.run import Run
from bench.results import RowResult, Spread
from bench.rows.row import Target


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


def _row(result: RowResult) -> dict[str, object]:
    facts = result.facts
    return {
        "name": facts.name,
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

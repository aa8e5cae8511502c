"""The files of a search: the best configurations, a table, a report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.config.pbtxt import to_pbtxt
from alipes.tune.report import report_page

if TYPE_CHECKING:
    from alipes.tune.results import Results

__all__ = ["write_results"]


def write_results(results: Results, folder: Path) -> list[Path]:
    """Writes them, all below a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, config in results.configs.items():
        path = folder / name / "config.pbtxt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(to_pbtxt(config), encoding="utf-8")
        written.append(path)
    table = folder / "trials.csv"
    rows = results.rows()
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    page = folder / "report.html"
    page.write_text(report_page(results), encoding="utf-8")
    return [*written, table, page]

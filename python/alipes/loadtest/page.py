"""Results as pages that need no other file."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

import alipes
from alipes.loadtest.cells import (
    HEADINGS,
    STREAM_HEADINGS,
    comparison_headings,
    comparison_rows,
    level_rows,
    stream_rows,
)
from alipes.loadtest.pictures import comparison_panels, report_panels
from alipes.plots.picture import PAGE_STYLE, panels

if TYPE_CHECKING:
    from alipes.loadtest.comparison import Comparison
    from alipes.loadtest.report import Report

__all__ = ["comparison_page", "report_page"]

_STYLE: Final = f"""
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ margin-bottom: 0; overflow-wrap: anywhere }} p.about {{ opacity: .75; margin-top: 0; overflow-wrap: anywhere }}
table {{ border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }}
th, td {{ padding: .25rem .75rem; text-align: right; border-bottom: 1px solid #8886 }}
th:first-child, td:first-child {{ text-align: left }}
{PAGE_STYLE}"""


def report_page(report: Report, title: str) -> str:
    """The page of a load test.

    Raises:
        Unsupported: If matplotlib is not installed.
    """
    notes = [f"{level.pace}: {note}" for level in report.levels for note in level.notes()]
    streams = [row for level in report.levels for row in stream_rows(level)]
    answered = any(level.result.answers for level in report.levels)
    return _page(
        title,
        _about(report.address, report.begun),
        [
            _table(HEADINGS, [row for level in report.levels for row in level_rows(level)]),
            _table(STREAM_HEADINGS, streams) if streams else "",
            _list("What has to be known of it", notes),
            panels(report_panels(report)) if answered else "",
        ],
        report.to_dict(),
    )


def comparison_page(comparison: Comparison, title: str) -> str:
    """The page of a comparison.

    Raises:
        Unsupported: If matplotlib is not installed.
    """
    answered = all(level.windows and level.result.answers for level in comparison.levels)
    addresses = dict.fromkeys(one.address for one in comparison.candidates)
    return _page(
        title,
        _about(" and ".join(addresses), comparison.begun, f"{comparison.pace}, {comparison.rounds} rounds"),
        [
            _table(comparison_headings(comparison), comparison_rows(comparison)),
            _list("What can be concluded", comparison.conclusions()),
            panels(comparison_panels(comparison)) if answered else "",
        ],
        comparison.to_dict(),
    )


def _about(address: str, begun: datetime, load: str = "") -> str:
    when = begun.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    tester = f"from {platform.node() or 'a machine'} ({platform.machine()}) by alipes {alipes.__version__}"
    return ", ".join(part for part in (address, load, when, tester) if part)


def _page(title: str, about: str, parts: Iterable[str], figures: dict[str, Any]) -> str:
    # A script element ends at the first `</`, wherever that stands.
    data = json.dumps(figures, allow_nan=False).replace("</", "<\\/")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n<body>\n'
        f'<h1>{escape(title)}</h1>\n<p class="about">{escape(about)}</p>\n'
        + "\n".join(part for part in parts if part)
        + f'\n<script type="application/json" id="figures">{data}</script>\n</body>\n</html>\n'
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = [place for place in range(len(headings)) if any(row[place] for row in rows)]

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cells[place])}</{tag}>" for place in shown) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table>\n<thead>{line(headings, "th")}</thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _list(heading: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"<h2>{escape(heading)}</h2>\n<ul>\n" + "\n".join(f"<li>{escape(line)}</li>" for line in lines) + "\n</ul>"

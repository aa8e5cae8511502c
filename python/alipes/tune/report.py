"""The report of a search: one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from alipes.config.pbtxt import to_pbtxt
from alipes.errors import Unsupported
from alipes.plots.picture import PAGE_STYLE, PANEL_INCHES, element
from alipes.tune.decisions import amount
from alipes.tune.goal import FIGURES, figure_of

if TYPE_CHECKING:
    from alipes.tune.outcome import Outcome
    from alipes.tune.results import Results

__all__ = ["report_page"]

_STYLE: Final = f"""{PAGE_STYLE}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
h1, h3, p, li {{ overflow-wrap: anywhere }}
table {{ border-collapse: collapse; font-size: 13px }} th, td {{ padding: .2rem .6rem; text-align: right }}
th {{ border-bottom: 1px solid #999; white-space: normal }}
td:first-child, th:first-child, td:last-child, th:last-child {{ text-align: left }}
tr.best {{ background: #1b9e7722; font-weight: 600 }} tr.failed, tr.missed {{ opacity: .65 }}
pre {{ background: #8882; padding: .8rem; overflow-x: auto }} figure {{ margin: 1rem 0; max-width: 45rem }}
td:first-child {{ min-width: 9rem; white-space: normal }}
td:last-child {{ min-width: 12rem; max-width: 24rem; white-space: normal }} tr.best td:last-child {{ font-weight: 400 }}
details ul {{ margin: 0; padding-left: 1rem }}
"""
_SHORT: Final = {f"p{percent}_ms": f"p{percent}" for percent in (50, 90, 95, 99)} | {"mean_ms": "mean"}
"""Headings of the latencies, whose cells have their unit."""


def report_page(results: Results) -> str:
    """The whole file."""
    best = results.best
    title = "Tuning" if best is None else f"Tuning: {best.point}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_about(results))}</p>",
        "<h2>Decisions</h2>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in results.decisions())}</ul>",
        *_configs(results),
        "<h2>Trials</h2>",
        f"<figure>{_drawing(results)}</figure>",
        _table(results),
    ]
    head = (
        f'<meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{chr(10).join(parts)}\n</body>\n</html>\n'


def _about(results: Results) -> str:
    wanted = " and ".join(
        f"{'large' if figure_of(one.metric).more_is_better else 'small'} {figure_of(one.metric).label}"
        for one in results.goal.objectives
    )
    limits = f", {text}" if (text := results.goal.limits_text()) else ""
    state = " The search was interrupted." if results.interrupted else ""
    return (
        f"{_tried(results)}, {len(results.rejected):,} left out, on {results.machine.key}. "
        f"Wanted: {wanted}{limits}.{state}"
    )


def _tried(results: Results) -> str:
    """How much was tried: a point outside of the space, such as the configuration as it was, counts by itself."""
    space = results.space
    points = [outcome.point for outcome in results.outcomes]
    inside = sum(space.at(space.places(point)).key == point.key for point in points)
    outside = len(points) - inside
    beside = f", and {outside:,} beside {'it' if space.size == 1 else 'them'}" if outside else ""
    return f"{inside:,} of {space.size:,} {'point was' if space.size == 1 else 'points were'} tried{beside}"


def _configs(results: Results) -> list[str]:
    if not results.configs:
        return []
    files = (
        f"<h3>{escape(name)}/config.pbtxt</h3><pre>{escape(to_pbtxt(config))}</pre>"
        for name, config in results.configs.items()
    )
    return ["<h2>Configuration</h2>", *files]


def _drawing(results: Results) -> str:
    """The picture as SVG; without matplotlib a sentence in its place."""
    try:
        figure = results.plot()
    except Unsupported as error:
        return f"<p>{escape(str(error))}</p>"
    figure.set_size_inches(*PANEL_INCHES)
    return element(figure)


def _table(results: Results) -> str:
    names = [name for name in FIGURES if any(name in outcome.figures for outcome in results.outcomes)]
    failed = [outcome for outcome in results.outcomes if outcome not in results.ranked]
    labels = [_SHORT.get(name, figure_of(name).label) for name in names]
    headings = _cells("th", ["point", *labels, ""])
    rows = [_row(results, outcome, names) for outcome in (*results.ranked, *failed)]
    return f'<div class="wide"><table><tr>{headings}</tr>{"".join(rows)}</table></div>'


def _row(results: Results, outcome: Outcome, names: Sequence[str]) -> str:
    figures = [amount(name, outcome.figures[name]) if name in outcome.figures else "" for name in names]
    missed = results.goal.missed(outcome.figures)
    words = outcome.failure or "; ".join(f"misses {limit}" for limit in missed)
    kind = "best" if outcome is results.best else "failed" if outcome.failure else "missed" if missed else ""
    cells = _cells("td", [str(outcome.point), *figures])
    return f'<tr class="{kind}">{cells}<td>{escape(words)}{_notes(outcome)}</td></tr>'


def _notes(outcome: Outcome) -> str:
    """What has to be known of the figures, folded: it is long, and of every trial."""
    if not outcome.notes or outcome.failure:
        return ""
    state = "" if outcome.is_settled else "not settled, "
    number = f"{len(outcome.notes)} note{'s' if len(outcome.notes) > 1 else ''}"
    items = "".join(f"<li>{escape(note)}</li>" for note in outcome.notes)
    return f"<details><summary>{state}{number}</summary><ul>{items}</ul></details>"


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)

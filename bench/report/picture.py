"""The picture of a run: for each row a bar per contender, drawn to the row's greatest figure."""

from html import escape

from bench.report.lines import figure
from bench.report.run import Run
from bench.results import RowResult

WIDTH = 910
LABEL_WIDTH = 300
BAR_WIDTH = 420
BAR_HEIGHT = 16
BAR_STEP = 22
TITLE_STEP = 30
MARGIN = 20
GAP = 14
OURS = "#2f6f8f"
OTHERS = "#b9c2c8"
STYLE = "text{font:13px system-ui,sans-serif;fill:#20262b} .title{font-weight:600} .note{fill:#66717a}"


def svg(run: Run) -> str:
    """The picture as an SVG document."""
    parts: list[str] = []
    y = MARGIN
    for result in run.results:
        if result.samples:  # of a row that was left out there is nothing to see
            y = _row(result, y, parts)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
        f'role="img" aria-label="Figures of alipes and of what it is compared with">\n'
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _row(result: RowResult, y: int, parts: list[str]) -> int:
    """Draws a row from ``y`` downwards; returns where it ends."""
    facts = result.facts
    note = f"{facts.unit}; {facts.better.value} is better"
    title = f'<tspan class="title">{escape(facts.title)}</tspan> <tspan class="note">({escape(note)})</tspan>'
    parts.append(f'<text x="{MARGIN}" y="{y + BAR_HEIGHT}">{title}</text>')
    y += TITLE_STEP
    greatest = max(abs(result.figure(label).median) for label in result.samples) or 1.0
    for label in result.samples:
        parts.append(_bar(label, figure(result, label), abs(result.figure(label).median) / greatest, y))
        y += BAR_STEP
    return y + GAP


def _bar(label: str, text: str, share: float, y: int) -> str:
    colour = OURS if label.startswith("alipes") else OTHERS
    width = max(1, round(BAR_WIDTH * share))
    baseline = y + BAR_HEIGHT - 4
    return (
        f'<text x="{MARGIN}" y="{baseline}">{escape(label)}</text>'
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{width}" height="{BAR_HEIGHT}" fill="{colour}"/>'
        f'<text x="{LABEL_WIDTH + width + 8}" y="{baseline}">{escape(text)}</text>'
    )

"""The table of slopes, as plain text that is the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Sequence

from support.soak.finding import Finding

_HEADINGS = ("series", "unit", "median", "slope per hour", "95 % interval", "may rise per hour", "verdict")


def table(found: Sequence[Finding]) -> str:
    """A line for each series."""
    rows = [_HEADINGS, *(_row(finding) for finding in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(finding: Finding) -> tuple[str, ...]:
    slope, tolerance = finding.slope, finding.tolerance_per_hour
    return (
        finding.series.title,
        finding.series.unit,
        number(finding.median),
        "" if slope is None else number(slope.per_hour, sign="+"),
        "" if slope is None else f"{number(slope.low, sign='+')} to {number(slope.high, sign='+')}",
        "" if tolerance is None else number(tolerance),
        finding.verdict.upper() if finding.verdict == "grows" else finding.verdict,
    )


def number(value: float, sign: str = "-") -> str:
    """A number with as many digits as a person reads; ``+`` gives it a sign in any case."""
    return f"{value:{sign}.3g}" if abs(value) < 1e3 else f"{value:{sign}.0f}"

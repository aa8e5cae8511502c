"""What a load test showed: its figures as tables, files and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from alipes.loadtest.level import Level, latency_ms
from alipes.loadtest.shown import Rows, Shown
from alipes.tables import without_nan

__all__ = ["Report"]


@dataclass(frozen=True)
class Report(Shown):
    """What a load test showed.

    Attributes:
        address: Who was asked.
        levels: In the order in which they were measured.
        begun: When the first level began.
    """

    _title = "Load test"

    address: str
    levels: Sequence[Level] = field(default_factory=list)
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __str__(self) -> str:
        """The table that `alipes loadtest` prints, and what has to be known of it."""
        from alipes.loadtest.text import report_text

        return report_text(self)

    def rows(self) -> list[dict[str, Any]]:
        """The figures, one row for each level."""
        return [level.to_dict() for level in self.levels]

    def window_rows(self) -> list[dict[str, Any]]:
        """What each window showed, also those that the figures do not come from."""
        return [row for level in self.levels for row in _windows(level)]

    def share_rows(self) -> list[dict[str, Any]]:
        """Of several kinds of requests, what each showed at each level."""
        return [
            {"loop": level.to_dict()["loop"], "load": level.pace.value, **row}
            for level in self.levels
            for row in level.share_rows()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON; what is not known is `None`."""
        levels = [_document(level) for level in self.levels]
        return {"address": self.address, "begun": self.begun.isoformat(timespec="seconds"), "levels": levels}

    def _tables(self) -> dict[str, Rows]:
        return {"levels": self.rows, "windows": self.window_rows, "shares": self.share_rows}

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A figure of matplotlib: rates, latencies, their distribution, and how they went from window to window.

        Args:
            path: A file for the picture, in the format that its name says.

        Raises:
            Unsupported: If matplotlib is not installed.
        """
        from alipes.loadtest.pictures import plot_report

        return plot_report(self, path)

    def _page(self, title: str) -> str:
        from alipes.loadtest.page import report_page

        return report_page(self, title)


def _document(level: Level) -> dict[str, Any]:
    shares = {"shares": [without_nan(row) for row in level.share_rows()]} if level.names else {}
    return without_nan(level.to_dict()) | shares | {"notes": level.notes()}


def _windows(level: Level) -> list[dict[str, Any]]:
    first_used = len(level.windows) - level.used
    return [
        {
            "loop": level.to_dict()["loop"],
            "load": level.pace.value,
            "window": number,
            "is_used": number >= first_used,
            "seconds": window.seconds,
            "rate": window.rate,
            "latency_ms": latency_ms(window, level.percentile),
            **{f"p{percent:g}_ms": window.latencies.percentile_ms(percent) for percent in (50, 90, 95, 99, 99.9)},
            "max_ms": window.latencies.max_ms,
            "answers": window.answers,
            "failed": window.failed,
            "tester_cores": window.tester_cores,
        }
        for number, window in enumerate(level.windows)
    ]

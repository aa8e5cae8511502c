"""What a comparison of two showed, and what can be concluded from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from alipes.loadtest.level import Level
from alipes.loadtest.pace import Closed, Pace
from alipes.loadtest.ratio import Ratio
from alipes.loadtest.shown import Rows, Shown
from alipes.loadtest.window import Window
from alipes.tables import without_nan

if TYPE_CHECKING:
    from alipes.loadtest.measure import Requests

__all__ = ["PERCENTILES", "Candidate", "Comparison"]

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
"""Latencies that are compared."""
_MIN_BEYOND: Final = 5
"""Answers of a window beyond a percentile, below which the percentile is left to chance."""


@dataclass(frozen=True)
class Candidate:
    """One of the two that are compared.

    Attributes:
        name: What it is called in tables and sentences.
        address: Its server.
        requests: What is sent to it; a model's name stands for random inputs of one row.
    """

    name: str
    address: str
    requests: Requests | str


@dataclass(frozen=True)
class Comparison(Shown):
    """What a comparison of two showed.

    Attributes:
        candidates: Both.
        pace: The load.
        windows: Of each candidate, one for each round.
        threads: Threads that sent.
        begun: When the first round began.
    """

    _title = "Comparison"

    candidates: tuple[Candidate, Candidate]
    pace: Pace
    windows: tuple[Sequence[Window], Sequence[Window]]
    threads: int = 1
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __str__(self) -> str:
        """The table that `alipes loadtest --compare` prints, and what can be concluded."""
        from alipes.loadtest.text import comparison_text

        return comparison_text(self)

    @property
    def rounds(self) -> int:
        """How many there were."""
        return min(map(len, self.windows))

    @property
    def levels(self) -> tuple[Level, Level]:
        """The figures of each candidate by itself."""
        first, second = (Level(self.pace, one, len(one), True, self.threads) for one in self.windows)
        return first, second

    @property
    def rate(self) -> Ratio:
        """How many times the first one's rate the second one's is."""
        return self._ratio([[window.rate for window in one] for one in self.windows])

    def latency(self, percent: float) -> Ratio:
        """How many times the first one's latency the second one's is, at a percentile.

        It is not known where a window had too few answers beyond the percentile.
        """
        if self.fewest_answers * (1 - percent / 100) < _MIN_BEYOND - 1e-9:
            return Ratio.of([], [])
        return self._ratio([[window.latencies.percentile_ms(percent) for window in one] for one in self.windows])

    @property
    def ratios(self) -> dict[str, Ratio]:
        """All that are compared, by the names that they have in tables."""
        return {"rate": self.rate} | {f"p{percent:g}_ms": self.latency(percent) for percent in PERCENTILES}

    @property
    def fewest_answers(self) -> int:
        """Answers of the window that had the fewest."""
        return min((window.answers for one in self.windows for window in one), default=0)

    def conclusions(self) -> list[str]:
        """What can be concluded, and what cannot, one sentence each."""
        first, second = (one.name for one in self.candidates)
        sentences = [self._about_rate(first, second)]
        for percent in PERCENTILES:
            ratio, name = self.latency(percent), f"p{percent:g}"
            if ratio.differs:
                sentences.append(f"{name}: {second} takes {_times(ratio)} times as long as {first}")
            elif ratio.is_known:
                sentences.append(
                    f"{name}: no difference can be seen, since {second} may take {_range(ratio)} times as long"
                )
            else:
                sentences.append(self._why_unknown(percent))
        return sentences + self._reservations()

    def rows(self) -> list[dict[str, Any]]:
        """A row for the rate, and one for each percentile, with both sides and their ratio.

        The figures of a side are geometric means of the rounds, as the ratio is, where there is one.
        """
        figures = [level.to_dict() for level in self.levels]
        return [
            {
                "measure": name,
                "first": ratio.first if ratio.is_known else figures[0][name],
                "second": ratio.second if ratio.is_known else figures[1][name],
                "ratio": ratio.value,
                "low": ratio.low,
                "high": ratio.high,
                "rounds": self.rounds,
            }
            for name, ratio in self.ratios.items()
        ]

    def window_rows(self) -> list[dict[str, Any]]:
        """What each round showed of each side."""
        return [
            {
                "round": number,
                "candidate": candidate.name,
                "rate": window.rate,
                **{f"p{percent:g}_ms": window.latencies.percentile_ms(percent) for percent in PERCENTILES},
                "answers": window.answers,
                "failed": window.failed,
            }
            for candidate, windows in zip(self.candidates, self.windows, strict=True)
            for number, window in enumerate(windows)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON; what is not known is `None`."""
        return {
            "begun": self.begun.isoformat(timespec="seconds"),
            "load": str(self.pace),
            "rounds": self.rounds,
            "candidates": [
                {"name": one.name, "address": one.address, **without_nan(level.to_dict())}
                for one, level in zip(self.candidates, self.levels, strict=True)
                if level.windows
            ],
            "ratios": {row["measure"]: without_nan(row) for row in self.rows()},
            "conclusions": self.conclusions(),
        }

    def _tables(self) -> dict[str, Rows]:
        return {"ratios": self.rows, "rounds": self.window_rows}

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A figure of matplotlib: the ratios with their intervals, the rounds, and the distributions of the latency.

        Args:
            path: A file for the picture, in the format that its name says.

        Raises:
            Unsupported: If matplotlib is not installed.
        """
        from alipes.loadtest.pictures import plot_comparison

        return plot_comparison(self, path)

    def _page(self, title: str) -> str:
        from alipes.loadtest.page import comparison_page

        return comparison_page(self, title)

    def _ratio(self, values: Sequence[Sequence[float]]) -> Ratio:
        first, second = (one[: self.rounds] for one in values)
        return Ratio.of(first, second)

    def _about_rate(self, first: str, second: str) -> str:
        ratio = self.rate
        if not ratio.is_known:
            return "the rates cannot be compared: " + (
                "a window had no answer" if self.fewest_answers == 0 else f"there were only {self.rounds} rounds"
            )
        if not isinstance(self.pace, Closed) and ratio.low > 0.95 and ratio.high < 1.05:
            return "the rate is that of the load, which both kept up with: it says nothing of what they can do"
        if ratio.differs:
            return f"{second} answers {_times(ratio)} times as many requests a second as {first}"
        return (
            f"the rates: no difference can be seen, since {second} may answer {_range(ratio)} times as many requests a "
            "second"
        )

    def _why_unknown(self, percent: float) -> str:
        needed = round(_MIN_BEYOND / (1 - percent / 100))
        if self.fewest_answers < needed:
            return (
                f"p{percent:g} cannot be compared: a window had {self.fewest_answers:,} answers, and it takes "
                f"{needed:,}; give a longer --window"
            )
        return f"p{percent:g} cannot be compared after {self.rounds} rounds"

    def _reservations(self) -> list[str]:
        sentences = []
        if self.rate.order_matters:
            sentences.append(
                f"who is second in a round has {self.rate.order:.2f} times the rate of who is first: one disturbs the "
                "other, which the ratios leave out"
            )
        for candidate, level in zip(self.candidates, self.levels, strict=True):
            sentences += [f"{candidate.name}: {note}" for note in (level.notes() if level.windows else [])]
        return sentences


def _times(ratio: Ratio) -> str:
    return f"{ratio.value:.3g} ({_range(ratio)})"


def _range(ratio: Ratio) -> str:
    return f"{ratio.low:.3g} to {ratio.high:.3g}"

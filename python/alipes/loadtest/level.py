"""What one level of load showed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from alipes.loadtest.histogram import Histogram
from alipes.loadtest.omission import omission
from alipes.loadtest.pace import Closed, Pace
from alipes.loadtest.spread import Interval
from alipes.loadtest.window import Window

__all__ = ["Level"]

_BUSY: Final = 0.9
"""Share of its threads' time from which the tester may itself be the limit."""
_LATE: Final = 0.1
"""Lateness of the tester as a share of the latency, from which it is worth a word."""

_MISSED: Final = 5
"""Requests of an open loop in a row whose answers are missing, at which a server may hang."""


@dataclass(frozen=True)
class Level:
    """What one level of load showed.

    Attributes:
        pace: The load.
        windows: All that were measured, in their order.
        used: How many of the last ones the figures come from.
        is_settled: Whether rate and latency agreed in these.
        threads: Threads that sent.
        percentile: The latency that had to settle; `None` for the mean.
        names: Of several kinds of requests, what each is called.
    """

    pace: Pace
    windows: Sequence[Window]
    used: int
    is_settled: bool
    threads: int
    percentile: float | None = None
    names: Sequence[str] = ()

    @cached_property
    def result(self) -> Window:
        """The windows that the figures come from, as one."""
        return Window.merged(self._counted)

    @property
    def checked(self) -> int:
        """Answers that were checked, in all windows."""
        return sum(window.checked for window in self.windows)

    @property
    def wrong(self) -> Mapping[str, int]:
        """What was wrong with them, in all windows, and how often."""
        return Window.merged(self.windows).wrong

    @property
    def rate(self) -> Interval:
        """Good answers per second."""
        return self._interval([window.rate for window in self.windows])

    @property
    def latency_ms(self) -> Interval:
        """The latency that had to settle, in milliseconds."""
        return self._interval([latency_ms(window, self.percentile) for window in self.windows])

    def _interval(self, values: Sequence[float]) -> Interval:
        return Interval.of(values[-self.used :], values[: -self.used])

    @property
    def shares(self) -> dict[str, Window]:
        """Of several kinds of requests, what each showed in the windows that the figures come from."""
        return dict(zip(self.names, self.result.parts, strict=True))

    @property
    def _counted(self) -> Sequence[Window]:
        return self.windows[-self.used :]

    @property
    def _silent_s(self) -> float:
        """Seconds at the end in which nothing came that was due by all that came before; 0 where something did."""
        silent = takewhile(lambda window: not (window.answers or window.failed), reversed(self._counted))
        silent_s = sum(window.seconds for window in silent)
        interval_s = 0 if isinstance(self.pace, Closed) else _MISSED / self.pace.value
        return silent_s if silent_s > max(self.result.latencies.max_ms / 1e3, interval_s) else 0

    def notes(self) -> list[str]:
        """What a reader of the figures has to know."""
        result = self.result
        notes = []
        if not result.answers and not result.failed:
            notes.append(f"no answer came within {result.seconds:.3g} s")
        elif silent_s := self._silent_s:
            notes.append(
                f"nothing came any more in the last {silent_s:.3g} s, which is longer than any answer took: the server "
                "may hang"
            )
        if not self.is_settled and len(self.windows) > 1 and result.answers:
            rates = [window.rate for window in self._counted]
            latencies = [latency_ms(window, self.percentile) for window in self._counted if window.answers]
            notes.append(
                f"it did not settle in {len(self.windows)} windows: the rate went from {min(rates):,.0f} to "
                f"{max(rates):,.0f}/s, the latency from {min(latencies):.3g} to {max(latencies):.3g} ms"
            )
        if result.tester_cores > _BUSY * self.threads:
            notes.append(
                f"the tester used {result.tester_cores:.1f} of its {self.threads} threads: it may be the limit, and "
                "its own time is in the latencies; give it --threads, or another machine"
            )
        if result.lateness.count and result.lateness.percentile_ms(99) > _LATE * result.latencies.percentile_ms(50):
            notes.append(
                f"the tester turned to requests late, to 99 % of them within {result.lateness.percentile_ms(99):.3g} "
                "ms; that is inside the latency"
            )
        if result.queueing.count and result.queueing.percentile_ms(99) > _LATE * result.latencies.percentile_ms(50):
            notes.append(
                f"requests waited for a connection, 99 % of them for at most {result.queueing.percentile_ms(99):.3g} "
                "ms; that is inside the latency"
            )
        if isinstance(self.pace, Closed) and (missing := omission(result.latencies)) is not None:
            notes.append(
                f"a closed loop asks less while it waits, here up to {missing.times:,.0f} times the median: about "
                f"{100 * missing.share:.0f} % of the requests of steady users are missing. With them p99 would be "
                f"{missing.p99_ms:.3g} ms; see it with --rate {_rounded(0.8 * self.rate.mean)}"
            )
        for text, count in sorted(self.wrong.items(), key=lambda item: -item[1]):
            notes.append(f"{count:,} of {self.checked:,} answers that were checked are wrong: {text}")
        for text, count in sorted(result.failures.items(), key=lambda item: -item[1]):
            notes.append(f"{count:,} failed: {text}")
        if result.dropped:
            notes.append(f"{result.dropped:,} were due and never sent: the server is far behind")
        return notes

    def share_rows(self) -> list[dict[str, Any]]:
        """The figures of each of several kinds of requests, for JSON and for tables; none where there is one kind."""
        return [
            {
                "share": name,
                "rate": window.rate,
                "mean_ms": window.latencies.mean_ms,
                **_percentiles(window),
                "max_ms": window.latencies.max_ms,
                "answers": window.answers,
                "failed": window.failed,
                "checked": window.checked,
                "wrong": sum(window.wrong.values()),
                **_streamed(window),
            }
            for name, window in self.shares.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON and for tables."""
        result, rate = self.result, self.rate
        return {
            "loop": "closed" if isinstance(self.pace, Closed) else "open",
            "load": self.pace.value,
            "rate": rate.mean,
            "rate_low": rate.low,
            "rate_high": rate.high,
            "mean_ms": result.latencies.mean_ms,
            **_percentiles(result),
            "max_ms": result.latencies.max_ms,
            "late_p99_ms": result.lateness.percentile_ms(99),
            "queue_p99_ms": result.queueing.percentile_ms(99),
            "answers": result.answers,
            "failed": result.failed,
            "checked": self.checked,
            "wrong": sum(self.wrong.values()),
            "seconds": result.seconds,
            "windows": len(self._counted),
            "is_settled": self.is_settled,
            "tester_cores": result.tester_cores,
            **_streamed(result),
        }


def _percentiles(window: Window) -> dict[str, float]:
    return {f"p{percent:g}_ms": window.latencies.percentile_ms(percent) for percent in (50, 90, 95, 99, 99.9)}


def _streamed(window: Window) -> dict[str, float]:
    """What streams showed; NaN without any, so that all rows have the same names."""
    streams = window.streams
    first, gaps = (Histogram(), Histogram()) if streams is None else (streams.first, streams.gaps)
    return {
        "responses_rate": math.nan if streams is None else streams.responses / window.seconds,
        **{f"first_p{percent}_ms": first.percentile_ms(percent) for percent in (50, 99)},
        **{f"gap_p{percent}_ms": gaps.percentile_ms(percent) for percent in (50, 99)},
    }


def latency_ms(window: Window, percentile: float | None) -> float:
    """The latency of a window that has to settle."""
    return window.latencies.mean_ms if percentile is None else window.latencies.percentile_ms(percentile)


def _rounded(rate: float) -> str:
    """A rate with two digits, as people write them."""
    return f"{float(f'{rate:.2g}'):g}" if rate < 1e6 else f"{rate:.0f}"

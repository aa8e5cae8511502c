"""`alipes loadtest`: how fast a server answers."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.connection import Header, TlsRoots, Url, default_address, read_headers, with_scheme
from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.cli.shapes import read_shape

if TYPE_CHECKING:
    from alipes.loadtest import Level, Window
    from alipes.loadtest.measure import Requests
    from alipes.loadtest.pace import Pace

_HEADINGS: Final = ("load", "rate", "±", "p50", "p90", "p99", "p99.9", "max", "failed", "")
_RIGHT: Final = _HEADINGS[:-1]
_BARS: Final = "▁▂▃▄▅▆▇█"


def loadtest(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="Name of the model.")] = "",
    url: Url = None,
    callers: Annotated[
        str | None,
        typer.Option(
            "--callers",
            metavar="NUMBERS",
            show_default=False,
            help="Closed loop: requests in flight, such as 1,8,64 or 4:16:4; 1 by default.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="NUMBERS",
            show_default=False,
            help="Open loop: requests per second, whatever the server does, such as 500,1000 or 100:500:100.",
        ),
    ] = None,
    even: Annotated[bool, typer.Option("--even", help="Open loop: evenly spaced, instead of random arrivals.")] = False,
    intervals: Annotated[
        Path | None,
        typer.Option("--intervals", metavar="FILE", show_default=False, help="Open loop: microseconds, one a line."),
    ] = None,
    in_flight: Annotated[int, typer.Option("--in-flight", min=1, help="Open loop: most requests under way.")] = 1024,
    version: Annotated[str, typer.Option("--model-version", show_default=False, help="Its version.")] = "",
    batch: Annotated[int, typer.Option("--batch", min=1, help="Rows in each request.")] = 1,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="INPUT:D,D", help="Sizes that the model leaves open; any number."),
    ] = None,
    zero: Annotated[bool, typer.Option("--zero", help="Send zeros instead of random values.")] = False,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="PATH", show_default=False, help="Post --body there, whatever serves it."),
    ] = None,
    body: Annotated[
        list[Path] | None,
        typer.Option("--body", metavar="FILE", show_default=False, help="What is posted; any number, in turn."),
    ] = None,
    content_type: Annotated[str, typer.Option("--content-type", help="Of --body.")] = "application/json",
    window: Annotated[float, typer.Option("--window", min=0.01, help="Seconds of a window.")] = 1.0,
    windows: Annotated[int, typer.Option("--windows", min=1, help="Most windows of a level.")] = 10,
    warm_up: Annotated[float, typer.Option("--warm-up", min=0, help="Seconds that count for nothing.")] = 0.5,
    within: Annotated[
        float, typer.Option("--within", min=0.1, metavar="PERCENT", help="How far settled windows may differ.")
    ] = 10.0,
    percentile: Annotated[
        float | None,
        typer.Option("--percentile", min=1, max=100, help="The latency that has to settle; the mean by default."),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Send so many requests, in one window.")] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads that send.")] = 1,
    error_budget: Annotated[
        float, typer.Option("--error-budget", min=0, max=100, metavar="PERCENT", help="Failures at which a level ends.")
    ] = 100.0,
    header: Header = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Measure how fast a server answers: a closed loop of callers, or an open loop at a rate.

    In an open loop a latency counts from the moment a request was due, so that a server that stalls cannot hide it. In
    a closed loop a stalled server is asked less, and what callers would have waited is missing.
    """

    def action() -> int:
        from alipes.client import Tls
        from alipes.loadtest import Measuring, run

        paces = _paces(callers, rate, even, intervals, in_flight)
        measuring = Measuring(window, windows, within / 100, percentile, warm_up, count, threads, error_budget / 100)
        view = _View(as_json)
        tls = Tls(roots=tls_roots) if tls_roots else None
        report = run(
            _requests(model, version, batch, shape, zero, path, body, content_type),
            paces,
            address=with_scheme(url or default_address(), encrypted=tls is not None),
            measuring=measuring,
            headers=read_headers(header),
            tls=tls,
            each_window=view.window,
        )
        view.end(report.levels)
        if as_json:
            print(json.dumps(report.to_dict(), indent=2))
        answers = sum(level.result.answers for level in report.levels)
        if not answers:
            raise CommandFailed("look at the failures above", "no request was answered")
        return 0

    return perform(action)


def _paces(callers: str | None, rate: str | None, even: bool, intervals: Path | None, in_flight: int) -> Sequence[Pace]:
    from alipes.loadtest import Closed, Open

    if sum(option is not None for option in (callers, rate, intervals)) > 1:
        raise UsageFailed("give one of --callers, --rate and --intervals")
    if intervals is not None:
        return [Open.replayed(intervals)]
    if rate is not None:
        return [
            Open(Open.at(value).pieces, seed=None if even else 0, in_flight=in_flight)
            for value in _numbers("--rate", rate)
        ]
    return [Closed(int(value)) for value in _numbers("--callers", callers or "1")]


def _numbers(option: str, text: str) -> list[float]:
    """`1,8,64` or `START:END:STEP`."""
    from alipes.loadtest.pace import spread

    try:
        if ":" in text:
            first, last, *step = (float(part) for part in text.split(":"))
            return list(spread(first, last, *(step or [1.0])))
        return [float(part) for part in text.split(",")]
    except (TypeError, ValueError) as error:
        raise UsageFailed(f"write {option} as numbers with commas between, or START:END:STEP, not {text!r}") from error


def _requests(  # noqa: PLR0913, PLR0917  # what the options say
    model: str,
    version: str,
    batch: int,
    shape: Sequence[str] | None,
    zero: bool,
    path: str | None,
    body: Sequence[Path] | None,
    content_type: str,
) -> Requests:
    from alipes.loadtest import ModelRequests, Posts

    if path is not None:
        if model or not body:
            raise UsageFailed("give --path with --body, and without a model")
        return Posts(path, [one.read_bytes() for one in body], content_type)
    if not model:
        raise UsageFailed("name a model, or give --path and --body")
    return ModelRequests(model, version, batch, dict(map(read_shape, shape or ())), "zero" if zero else "random")


class _View:
    """What is seen while it runs: one line that moves, then one line for each level."""

    def __init__(self, silent: bool) -> None:
        self._moves = sys.stderr.isatty() and not silent
        self._silent = silent

    def window(self, pace: Pace, windows: Sequence[Window]) -> None:
        """The level so far, on a terminal."""
        if self._moves:
            last = windows[-1]
            line = (
                f"{pace}: {last.rate:,.0f}/s {sparkline([one.rate for one in windows])}  "
                f"p99 {last.latencies.percentile_ms(99):.3g} ms "
                f"{sparkline([one.latencies.percentile_ms(99) for one in windows])}"
            )
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def end(self, levels: Sequence[Level]) -> None:
        """The table, and what has to be known of it."""
        if self._moves:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if self._silent:
            return
        from alipes.cli.columns import print_columns

        print_columns(_HEADINGS, [_row(level) for level in levels], right=_RIGHT)
        for level in levels:
            for note in level.notes():
                print(f"{level.pace}: {note}")


def _row(level: Level) -> tuple[str, ...]:
    result, rate = level.result, level.rate
    cells = [f"{result.latencies.percentile_ms(percent):.3g} ms" for percent in (50, 90, 99, 99.9)]
    share = "" if math.isnan(rate.share) else f"{rate.share:.1%}"
    state = "" if level.is_settled or len(level.windows) == 1 else "not settled"
    return (
        str(level.pace), f"{result.rate:,.0f}/s", share, *cells, f"{result.latencies.max_ms:.3g} ms",
        f"{result.failed:,}" if result.failed else "", state,
    )  # fmt: skip


def sparkline(values: Sequence[float]) -> str:
    """The last values as bars between nothing and their largest."""
    shown = [value for value in values if not math.isnan(value)][-20:]
    top = max(shown, default=0) or 1
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)

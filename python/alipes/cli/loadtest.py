"""`alipes loadtest`: how fast a server answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from alipes.cli.connection import Header, TlsRoots, Url, default_address, read_headers, with_scheme
from alipes.cli.failures import INTERRUPTED, CommandFailed, UsageFailed, perform
from alipes.cli.loadtest_view import View
from alipes.cli.loadtest_words import candidate, check_of, paces_of, requests_of
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.loadtest import Candidate, Comparison, Report
    from alipes.loadtest.measure import Requests
    from alipes.loadtest.pace import Pace

HELP: Final = """Measure how fast a server answers.

\b
  alipes loadtest MODEL --callers 1,8,64    closed loop: each caller waits for
                                            its answer before it asks again
  alipes loadtest MODEL --rate 100,200      open loop: requests are due at a
                                            rate, whatever the server does
  alipes loadtest MODEL --compare A B       which of two servers is faster
  alipes loadtest MODEL --save page.html    with a page of tables and pictures

In an open loop a latency counts from the moment a request was due, so that a server that stalls cannot hide it. In a
closed loop a stalled server is asked less, and what callers would have waited is missing.

A line of the table is a level of load: the rate with the half width of its 95 % interval, and percentiles of the
latency. A level takes at most --windows times --window seconds, and ends as soon as three windows in a row agree.
"""

_SAVE: Final = ("--save", "--csv", "--parquet", "--html", "--png", "--svg")
"""One option by several names: the file's name says the format."""


def loadtest(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="Name of the model; none with --path.")
    ] = "",
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
    in_flight: Annotated[
        int, typer.Option("--in-flight", min=1, metavar="NUMBER", help="Open loop: most requests under way.")
    ] = 1024,
    version: Annotated[
        str,
        typer.Option(
            "--model-version", metavar="NUMBER", show_default=False, help="Version of the model; the latest by default."
        ),
    ] = "",
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="ROWS", help="Rows in each request.")] = 1,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="INPUT:D,D", help="Sizes that the model leaves open; any number."),
    ] = None,
    zero: Annotated[bool, typer.Option("--zero", help="Send zeros instead of random values.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", show_default=False, help="Arrays by input (np.savez), sent in turn by axis 0."
        ),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="first|FILE",
            show_default=False,
            help="Check samples of the answers: equal requests get equal answers, or arrays by output (np.savez).",
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="PATH", show_default=False, help="Post --body there, whatever serves it."),
    ] = None,
    body: Annotated[
        list[Path] | None,
        typer.Option("--body", metavar="FILE", show_default=False, help="What is posted; any number, in turn."),
    ] = None,
    content_type: Annotated[
        str, typer.Option("--content-type", metavar="TYPE", help="Content type of --body.")
    ] = "application/json",
    window: Annotated[float, typer.Option("--window", min=0.01, metavar="SECONDS", help="Length of a window.")] = 1.0,
    windows: Annotated[int, typer.Option("--windows", min=1, metavar="NUMBER", help="Most windows of a level.")] = 10,
    warm_up: Annotated[
        float, typer.Option("--warm-up", min=0, metavar="SECONDS", help="What is sent first, and counts for nothing.")
    ] = 0.5,
    within: Annotated[
        float, typer.Option("--within", min=0.1, metavar="PERCENT", help="How far windows may differ that agree.")
    ] = 10.0,
    percentile: Annotated[
        float | None,
        typer.Option(
            "--percentile",
            min=1,
            max=100,
            metavar="PERCENT",
            help="The latency that has to agree; the mean by default.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="NUMBER", help="Send so many requests, in one window.")
    ] = None,
    silence: Annotated[
        float,
        typer.Option(
            "--silence", min=0.01, metavar="SECONDS", help="With --count: time without an answer that ends the level."
        ),
    ] = 30.0,
    threads: Annotated[int, typer.Option("--threads", min=1, metavar="NUMBER", help="Threads that send.")] = 1,
    error_budget: Annotated[
        float,
        typer.Option("--error-budget", min=0, max=100, metavar="PERCENT", help="Share of failures that ends a level."),
    ] = 100.0,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            show_default=False,
            help="Load two in turn, and say by how much they differ: addresses, models, or versions of MODEL.",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=4, metavar="NUMBER", help="With --compare: rounds with a window of each.")
    ] = 10,
    header: Header = None,
    tls_roots: TlsRoots = None,
    save: Annotated[
        list[Path] | None,
        typer.Option(
            *_SAVE,
            metavar="FILE",
            show_default=False,
            help="Write the results there, in the format that the name ends in; any number.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Measure how fast a server answers: a closed loop of callers, or an open loop at a rate.

    In an open loop a latency counts from the moment a request was due, so that a server that stalls cannot hide it. In
    a closed loop a stalled server is asked less, and what callers would have waited is missing.
    """

    def action() -> int:
        from alipes.client import Tls
        from alipes.loadtest import Measuring
        from alipes.loadtest.save import check_path

        checked = check_of(check) if check is not None else None
        measuring = Measuring(
            window, windows, within / 100, percentile, warm_up, count, threads, error_budget / 100, checked, silence
        )
        tls = Tls(roots=tls_roots) if tls_roots else None
        options = {"measuring": measuring, "headers": read_headers(header), "tls": tls}
        files = [check_path(file) for file in save or ()]
        paces = paces_of(callers, rate, even, intervals, in_flight)
        address = with_scheme(url or default_address(), encrypted=tls is not None)
        view = View(as_json, measuring)

        def requests(model: str, version: str = version) -> Requests:
            return requests_of(model, version, batch, shape, zero, path, body, content_type, data)

        if compare is None:
            sent = requests(model)
            view.begin(str(paces[0]))
            return _end(
                lambda: _measure(sent, paces, address, view, options), f"Load test of {model or path}", files, view
            )
        if len(paces) > 1 or count is not None:
            raise UsageFailed("give --compare one level of load, and no --count")
        sides = [candidate(word, model, address, requests, tls is not None) for word in compare]
        view.begin("round 1")
        title = f"Comparison of {' and '.join(one.name for one in sides)}"
        return _end(lambda: _compare(sides, paces[0], rounds, view, options), title, files, view)

    with leaving_on_signals():
        return perform(action)


def _measure(requests: Requests, paces: Sequence[Pace], address: str, view: View, options: Mapping[str, Any]) -> Report:
    from alipes.loadtest import run

    return run(requests, paces, address=address, each_window=view.window, **options)


def _compare(sides: Sequence[Candidate], pace: Pace, rounds: int, view: View, options: Mapping[str, Any]) -> Comparison:
    from alipes.loadtest import compare

    first, second = sides
    return compare(first, second, pace, rounds=rounds, each_round=view.round, **options)


def _end(work: Callable[[], Report | Comparison], title: str, files: Sequence[Path], view: View) -> int:
    """Does the work, and shows and writes what it showed, also where somebody ended it."""
    from alipes.loadtest import Comparison, Interrupted

    interrupted = False
    try:
        result = work()
    except Interrupted as error:
        result, interrupted = error.result, True
    finally:
        view.clear()
    levels = [level for level in result.levels if level.windows]
    if levels or not interrupted:
        view.show(result)
        for file in files:
            result.save(file, title)
    if interrupted:
        print("interrupted" if levels else "interrupted before anything was measured", file=sys.stderr)
        return INTERRUPTED
    # Of two, both have to answer; of several levels, one.
    if not levels or not (all if isinstance(result, Comparison) else any)(level.result.answers for level in levels):
        raise CommandFailed("look at the notes above", "no request was answered")
    if any(level.wrong for level in levels):
        raise CommandFailed("look at the notes above", "answers are wrong")
    return 0

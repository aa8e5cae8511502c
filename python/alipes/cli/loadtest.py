"""`alipes loadtest`: how fast a server answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alipes.cli.connection import Header, TlsRoots, Url, default_address, read_headers, with_scheme
from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.cli.loadtest_view import View
from alipes.cli.shapes import read_shape

if TYPE_CHECKING:
    from alipes.loadtest import Candidate
    from alipes.loadtest.measure import Requests
    from alipes.loadtest.pace import Pace


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
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            show_default=False,
            help="Load two in turn, and say by how much they differ: addresses, models, or versions of MODEL.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=4, help="Of --compare: a window of each, order swapped.")] = 10,
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
        from alipes.loadtest import Measuring

        measuring = Measuring(window, windows, within / 100, percentile, warm_up, count, threads, error_budget / 100)
        tls = Tls(roots=tls_roots) if tls_roots else None
        options = {"measuring": measuring, "headers": read_headers(header), "tls": tls}
        paces = _paces(callers, rate, even, intervals, in_flight)
        address = with_scheme(url or default_address(), encrypted=tls is not None)

        def requests(model: str, version: str = version) -> Requests:
            return _requests(model, version, batch, shape, zero, path, body, content_type)

        if compare is None:
            return _measure(requests(model), paces, address, as_json, options)
        if len(paces) > 1 or count is not None:
            raise UsageFailed("give --compare one level of load, and no --count")
        candidates = [_candidate(word, model, address, requests, tls is not None) for word in compare]
        return _compare(candidates, paces[0], rounds, as_json, options)

    return perform(action)


def _measure(requests: Requests, paces: Sequence[Pace], address: str, as_json: bool, options: Mapping[str, Any]) -> int:
    from alipes.loadtest import run

    view = View(as_json)
    report = run(requests, paces, address=address, each_window=view.window, **options)
    view.levels(report.levels)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    if not any(level.result.answers for level in report.levels):
        raise CommandFailed("look at the failures above", "no request was answered")
    return 0


def _compare(
    candidates: Sequence[Candidate], pace: Pace, rounds: int, as_json: bool, options: Mapping[str, Any]
) -> int:
    from alipes.loadtest import compare

    view = View(as_json)
    first, second = candidates
    comparison = compare(first, second, pace, rounds=rounds, each_round=view.round, **options)
    view.comparison(comparison)
    if as_json:
        print(json.dumps(comparison.to_dict(), indent=2))
    if not all(level.result.answers for level in comparison.levels):
        raise CommandFailed("look at the failures above", "a side answered no request")
    return 0


def _candidate(word: str, model: str, address: str, requests: Callable[..., Requests], encrypted: bool) -> Candidate:
    """An address, a version of the model, or a model."""
    from alipes.loadtest import Candidate

    if ":" in word:
        return Candidate(word, with_scheme(word, encrypted=encrypted), requests(model))
    if model and word.isdecimal():
        return Candidate(f"version {word}", address, requests(model, word))
    if model:
        raise UsageFailed(f"give --compare two addresses, or versions of {model}; leave MODEL out to compare models")
    return Candidate(word, address, requests(word))


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

"""`alipes loadtest`: how fast a server answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.cli import loadtest_options as options
from alipes.cli.certificates import tls_of, with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, addresses_of, read_headers
from alipes.cli.failures import INTERRUPTED, CommandFailed, UsageFailed, perform
from alipes.cli.loadtest_sent import Sender, Sent
from alipes.cli.loadtest_view import View
from alipes.cli.loadtest_words import check_of, paces_of, windows_of
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.loadtest import Candidate, Comparison, Report
    from alipes.loadtest.mix import Mixed
    from alipes.loadtest.pace import Pace


HELP: Final = """Measure how fast a server answers.

\b
  alipes loadtest MODEL --callers 1,8,64    closed loop: each caller waits for
                                            its answer before it asks again
  alipes loadtest MODEL --rate 100,200      open loop: requests are due at a
                                            rate, whatever the server does
  alipes loadtest MODEL --compare A B       which of two servers is faster
  alipes loadtest MODEL --url a,b           two servers, half of the requests
                                            each
  alipes loadtest --replay log              what a payload log recorded
  alipes loadtest MODEL --save page.html    with a page of tables and pictures

In an open loop a latency counts from the moment a request was due, so that a server that stalls cannot hide it. In a
closed loop a stalled server is asked less, and what callers would have waited is missing.

A line of the table is a level of load: the rate with the half width of its 95 % interval, and percentiles of the
latency. A level takes at most --windows times --window seconds, and ends as soon as three windows in a row agree;
--duration sets its length instead.
"""


@with_certificate
def loadtest(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: options.Model = "",
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    callers: options.Callers = None,
    rate: options.Rate = None,
    even: options.Even = False,
    intervals: options.Intervals = None,
    in_flight: options.InFlight = 1024,
    threads: options.Threads = 1,
    version: options.ModelVersion = "",
    batch: options.Batch = 1,
    shape: options.Shape = None,
    zero: options.Zero = False,
    data: options.DataFiles = None,
    stream: options.Stream = False,
    sequences: options.Sequences = None,
    shared_memory: options.SharedMemory = False,
    shared_outputs: options.SharedOutputs = 0,
    mix: options.Mix = None,
    compare: options.Compare = None,
    rounds: options.Rounds = 10,
    path: options.PostPath = None,
    body: options.Body = None,
    replay: options.Replay = None,
    content_type: options.ContentType = "application/json",
    window: options.WindowLength = 1.0,
    windows: options.Windows = 10,
    duration: options.Duration = None,
    warm_up: options.WarmUp = 0.5,
    within: options.Within = 10.0,
    percentile: options.Percentile = None,
    count: options.Count = None,
    silence: options.Silence = 30.0,
    error_budget: options.ErrorBudget = 100.0,
    check: options.CheckAnswers = None,
    save: options.Save = None,
    as_json: options.AsJson = False,
) -> int:
    """Measures how fast a server answers; `HELP` says how."""

    def action() -> int:
        nonlocal window, windows
        from alipes.loadtest import Closed, Measuring
        from alipes.loadtest.save import check_path

        sent = Sent(
            model,
            version,
            batch,
            shape or (),
            zero,
            data or (),
            stream,
            sequences,
            shared_memory,
            shared_outputs,
            mix or (),
            path,
            body or (),
            content_type,
            check,
            replay or (),
        )
        checked = check_of(check) if check is not None else None
        if duration is not None and (compare is not None or count is not None):
            raise UsageFailed("give --duration without --count and --compare: they say themselves how long it takes")
        if duration is not None:
            window, windows = windows_of(duration, window)
        measuring = Measuring(
            window,
            windows,
            within / 100,
            percentile,
            warm_up,
            count,
            threads,
            error_budget / 100,
            checked,
            silence,
            ends_early=duration is None,
        )
        tls = tls_of(tls_roots)
        headers = read_headers(header, api_key)
        files = [check_path(file) for file in save or ()]
        paces = paces_of(callers, rate, even, intervals, in_flight)
        if compare is not None and (mix or len(paces) > 1 or count is not None):
            raise UsageFailed("give --compare one level of load, and neither --count nor --mix")
        addresses = addresses_of(url, encrypted=tls is not None)
        if compare is not None and len(addresses) > 1:
            raise UsageFailed("give --compare one --url: what it compares names its own servers")
        address = addresses[0]
        view = View(as_json, measuring)
        how = {"measuring": measuring, "headers": headers, "tls": tls}
        most_callers = max((pace.callers for pace in paces if isinstance(pace, Closed)), default=0)
        with ExitStack() as stack:
            sender = Sender(sent, most_callers, headers, tls, stack)
            view.begin(str(paces[0]) if compare is None else "round 1")
            if compare is None:
                requests = sender.spread(model, addresses)
                return _end(
                    lambda: _measure(requests, paces, addresses, view, how), f"Load test of {sent.title}", files, view
                )
            sides = [sender.candidate(word, address) for word in compare]
            title = f"Comparison of {' and '.join(one.name for one in sides)}"
            return _end(lambda: _compare(sides, paces[0], rounds, view, how), title, files, view)

    with leaving_on_signals():
        return perform(action)


def _measure(
    requests: Mixed, paces: Sequence[Pace], addresses: Sequence[str], view: View, how: Mapping[str, Any]
) -> Report:
    from alipes.loadtest import run

    return run(requests, paces, address=addresses, each_window=view.window, **how)


def _compare(sides: Sequence[Candidate], pace: Pace, rounds: int, view: View, how: Mapping[str, Any]) -> Comparison:
    from alipes.loadtest import compare

    first, second = sides
    return compare(first, second, pace, rounds=rounds, each_round=view.round, **how)


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

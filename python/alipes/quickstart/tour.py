"""The order of the tour: start the server, classify scans over every protocol, load it, show its batches, stop it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from alipes.client import Client
from alipes.errors import AlipesError
from alipes.leaving import leaving_on_signals
from alipes.loadtest import Posts
from alipes.quickstart import digits, load
from alipes.quickstart.batches import read_batches, since
from alipes.quickstart.child import Addresses, ServerProcess
from alipes.quickstart.protocols import classify_all, json_body
from alipes.quickstart.screen import Screen

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells give it."""


def run(screen: Screen, seconds: float, *, keep: bool) -> int:
    """Shows the whole tour and leaves no process and no file behind, however it ends.

    Args:
        screen: Where to show it.
        seconds: Length of the load.
        keep: Leave the server running at the end, until Ctrl-C.

    Returns:
        The exit code: 0, 1 after an error that was shown, `INTERRUPTED` after Ctrl-C in the middle.
    """
    try:
        with leaving_on_signals(), ServerProcess(digits.REPOSITORY) as server:
            try:
                addresses = _show(screen, server, seconds)
            except (AlipesError, OSError) as error:
                screen.failed(error, server.log_tail())
                return 1
            return _end(screen, server, addresses if keep else None)
    except KeyboardInterrupt:
        return INTERRUPTED


def _show(screen: Screen, server: ServerProcess, seconds: float) -> Addresses:
    """Everything between start and stop; returns where the server is."""
    with screen.waiting("starting the server"):
        addresses = server.wait_ready(digits.MODEL)
        ready_after_s = server.age_s
    scans = digits.held_out()
    screen.title(len(scans.labels))
    screen.ready(addresses, ready_after_s)

    results = classify_all(addresses, scans)
    screen.drawings(scans, results[0].probabilities)
    screen.protocols(results)

    with Client(f"http://{addresses.http}") as client:
        before = read_batches(client, digits.MODEL)
        with screen.progress(seconds) as tick:
            result = _load(addresses, scans, seconds, tick)
        screen.load(result)
        screen.batches(since(before, read_batches(client, digits.MODEL)))
    return addresses


def _load(addresses: Addresses, scans: digits.Digits, seconds: float, tick: Callable[[float], None]) -> load.LoadResult:
    """Sends scans as JSON, one a request, over many connections at once."""
    posts = Posts(f"/v2/models/{digits.MODEL}/infer", [json_body(scan) for scan in scans.scans])
    return load.run(addresses.http, posts, seconds, tick=tick)


def _end(screen: Screen, server: ServerProcess, running: Addresses | None) -> int:
    screen.next_steps(running)
    if running is not None:
        screen.running(server.pid)
        _wait_for_interrupt(server)
    status = server.stop()
    screen.stopped(status)
    return 0 if status == 0 else 1


def _wait_for_interrupt(server: ServerProcess) -> None:
    """Returns at Ctrl-C, or when the server ends by itself."""
    try:
        server.wait()
    except KeyboardInterrupt:
        return

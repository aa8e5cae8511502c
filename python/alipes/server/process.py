"""The server as a process: start, reload, wait for a signal, drain, exit code."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from alipes.backends.attached.socket import keep_socket
from alipes.config.options import ServerOptions
from alipes.config.unguarded import unguarded
from alipes.errors import AlipesError
from alipes.repository.storage.authorities import trust_bundle
from alipes.server.installation import check_installation
from alipes.server.log import configure, log, reopen
from alipes.server.memory import bound_heaps
from alipes.server.readiness import notify_ready
from alipes.server.server import Companion, InProcessServer
from alipes.server.signals import RELOAD_SIGNAL, STOP_SIGNALS, Event, Wakeup

EXPIRED = "Exit timeout expired. Exiting immediately."

# Signals this close together are one wish: `timeout`, shells and supervisors signal the process and then its group.
ONE_WISH_S = 0.25


def run(
    options: ServerOptions,
    explain: Callable[[AlipesError], str] = str,
    *,
    greets: bool = False,
    companion: Companion | None = None,
) -> int:
    """Serves until SIGTERM or SIGINT; SIGHUP reloads certificates and opens files again.

    Args:
        options: What to serve, and where.
        explain: What to say of an error that keeps the server from starting.
        greets: Whether the server says, once it is ready, what a person may want to know.
        companion: What goes along with the server.

    Returns:
        0 after a clean drain, 1 if the server could not start. If the drain does not end within the exit time-out, or a
        second signal comes, what is not finished is answered with an error and the process ends here with 1.
    """
    try:
        configure(options.log)
    except OSError as error:
        return _refuse(f"failed to open log file '{options.log.file}': {error.strerror}")
    bound_heaps()
    for notice in (*options.notices, *unguarded(options)):
        log.warning("%s", notice)
    with Wakeup() as wakeup:
        try:
            check_installation()
            trusted = trust_bundle(os.environ)
            if options.worker.attached_socket is not None:
                keep_socket(options.worker.attached_socket)
            # Binds: a port in use is an error before any model is loaded.
            server = InProcessServer(
                options, greets=greets, companion=companion, when_idle=lambda: wakeup.notify(Event.IDLE)
            )
        except AlipesError as error:
            return _refuse(explain(error))
        try:
            return _serve(server, wakeup, options.exit_timeout_s, explain)
        finally:
            if trusted is not None:
                trusted.close()


def _serve(
    server: InProcessServer, wakeup: Wakeup, exit_timeout_s: float, explain: Callable[[AlipesError], str]
) -> int:
    start = _Background(server.start, lambda: wakeup.notify(Event.STARTED))
    signalled = _wait_for_signal(server, wakeup, start)
    is_idle = signalled == Event.IDLE
    if signalled:
        server.abandon_start()
        log.info("No client asks for anything: the server ends." if is_idle else f"Signal ({signalled}) Received.")
    stop = _Background(lambda: server.stop(exit_timeout_s), lambda: wakeup.notify(Event.STOPPED))
    if not _wait_for_stop(server, wakeup, stop, exit_timeout_s, wishes=0 if is_idle else 1):
        log.error(EXPIRED)
        server.cut()
        _leave_now(1)
    errors = [part.error for part in (start, stop) if part.error is not None and not signalled]
    code = _refuse(explain(errors[0]) if isinstance(errors[0], AlipesError) else str(errors[0])) if errors else 0
    if server.abandoned:
        _leave_now(code)
    return code


def _wait_for_signal(server: InProcessServer, wakeup: Wakeup, start: _Background) -> int:
    """The signal that ends the service, or that it is idle; 0 if the service could not start."""
    while True:
        for number in wakeup.wait():
            if number in STOP_SIGNALS or number == Event.IDLE:
                return number
            if number == Event.STARTED and start.error is None:
                notify_ready(os.environ)
            if number == RELOAD_SIGNAL:
                _reload(server)
            if number == Event.STARTED and start.error is not None:
                return 0


def _wait_for_stop(
    server: InProcessServer, wakeup: Wakeup, stop: _Background, timeout_s: float, *, wishes: int
) -> bool:
    """True once everything has ended; false at a second signal, of which some have come, or when the time is up."""
    begun = time.monotonic()
    while True:
        seen = wakeup.wait(max(0.0, begun + timeout_s - time.monotonic()))
        if Event.STOPPED in seen:
            return stop.result is True
        if RELOAD_SIGNAL in seen:
            _reload(server)
        again = any(number in STOP_SIGNALS for number in seen) and time.monotonic() > begun + ONE_WISH_S
        wishes += again
        if wishes > 1 or not seen:
            return False


def _reload(server: InProcessServer) -> None:
    """Opens the log again and has the server read its files, on a thread: a disk must not hold signals up."""

    def reload() -> None:
        try:
            reopen()
        except OSError as error:
            log.error("the log goes on in its old file: %s", error)
        log.info("Signal (%d) Received: certificates and files are opened again.", RELOAD_SIGNAL)
        server.reload()

    _Background(reload, lambda: None)


def _leave_now(code: int) -> None:
    """Ends the process without waiting for threads that may never return, or taking away what they use."""
    sys.stderr.flush()
    os._exit(code)


def _refuse(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


class _Background:
    """Runs one call on a thread of its own and keeps how it ended: the main thread must stay free for signals."""

    def __init__(self, call: Callable[[], object], done: Callable[[], None]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self._call = call
        self._done = done
        threading.Thread(target=self._run, name="alipes-background", daemon=True).start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:
            if not isinstance(error, AlipesError):
                log.exception("the server failed")
            self.error = error
        self._done()

"""`alipes monitor`: what running servers do, live, and in a file."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli.certificates import tls_of, with_certificate
from alipes.cli.connection import ApiKey, TlsRoots, hold_key
from alipes.cli.failures import CommandFailed, abridged, perform
from alipes.cli.watched import Ports, watched
from alipes.monitor.board import Board
from alipes.monitor.columns import Column, chosen
from alipes.monitor.judge import Tally
from alipes.monitor.ledger import Key, Row
from alipes.monitor.recorder import Listener, Recorder
from alipes.monitor.screen import Screen
from alipes.monitor.servers import LATEST, Place, agreed, involved

_SHOWN: Final = 2
"""Servers that a note names."""


@with_certificate
def monitor(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    servers: Annotated[
        list[str] | None,
        typer.Argument(metavar="SERVER", show_default=False, help="Names or addresses; see --url."),
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="ADDRESS",
            help="A server: HOST, HOST:PORT (its HTTP, gRPC or metrics), http:// or grpc://; any number. "
            "By default the server that `alipes launch` started in this folder, else this machine.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Watch this model, or the models of this ensemble; all by default.")] = "",
    model_version: Annotated[int, typer.Option(help="Its version; -1 for the latest.")] = LATEST,
    output: Annotated[Path | None, typer.Option(help="Write the record there, as comma-separated values.")] = None,
    columns: Annotated[str, typer.Option(help="Further columns of the record, with commas between, or `all`.")] = "",
    rate: Annotated[
        float, typer.Option(min=0.01, max=1000, metavar="NUMBER", help="Looks a second at each server.")
    ] = 10.0,
    seconds: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="End after so long, instead of with Ctrl-C.")
    ] = None,
    http_port: Annotated[int | None, typer.Option(help="Where servers are asked about models: 8000.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Where their counters are: 8002.")] = None,
    grpc_port: Annotated[
        int | None, typer.Option(help="Where servers without HTTP are asked about models: 8001.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Ask over encrypted connections.")] = False,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
) -> int:
    """Watch what servers do: executions, time in queues and in models, and what holds the work up."""

    def action() -> int:
        hold_key(api_key)
        security = tls_of(tls_roots, always=tls)
        ports = Ports(http_port, grpc_port, metrics_port)
        named = [part for word in (*(servers or []), *(url or [])) for part in word.split(",")]
        places = watched(named, ports, security)
        keys = agreed({one.ip: involved(one, model, model_version) for one in places}) if model else None
        wanted = chosen("all" if columns == "all" else [name for name in columns.split(",") if name])
        silent = _record(places, keys, wanted, output, 1 / rate, seconds)
        if silent:
            raise CommandFailed(
                "name the port of the metrics with --metrics-port, or start the server",
                f"{', '.join(one.metrics for one in silent)} never answered",
            )
        return 0

    return perform(action)


def _record(
    places: Sequence[Place],
    keys: Sequence[Key] | None,
    columns: Sequence[Column],
    output: Path | None,
    interval_s: float,
    seconds: float | None,
) -> list[Place]:
    """Watches until it is stopped. Returns the servers that never answered."""
    board, tally = Board(time.time()), Tally()

    def record_rows(rows: Sequence[Row]) -> None:
        board.add(rows)
        for row in rows:
            tally.add(row)

    first: list[tuple[Place, str]] = []
    begun = threading.Event()

    def complain(where: Place, reason: str | None) -> None:
        if reason is not None and not begun.is_set():
            first.append((where, reason))
        else:
            _complain(where, reason)

    listener = Listener(rows=record_rows, trouble=complain)
    record = output.open("w", encoding="utf-8", newline="") if output else contextlib.nullcontext()
    with _until_stopped(seconds) as stop, record as file:
        recorder = Recorder(places, keys, columns, file, interval_s, listener)
        recorder.begin()
        begun.set()
        _complain_at_first(first)
        with Screen(board, tally.verdict, shown=lambda: len(recorder.silent) < len(places)):
            recorder.run(stop)
    return recorder.silent


def _complain_at_first(silent: Sequence[tuple[Place, str]]) -> None:
    """Says in one note which servers do not answer at the first look."""
    if len(silent) == 1:
        _complain(*silent[0])
    elif silent:
        shown = ", ".join(where.ip for where, _ in silent[:_SHOWN])
        more = f" and {len(silent) - _SHOWN} more" if len(silent) > _SHOWN else ""
        print(abridged(f"note: the metrics of {shown}{more} do not answer; they are tried again"), file=sys.stderr)


def _short(where: Place, reason: str) -> str:
    return reason.replace(f": cannot connect to {where.metrics}: ", ": ")


def _complain(where: Place, reason: str | None) -> None:
    """Says once that a server stops answering, or answers again (then without a reason)."""
    text = f"{where.ip} answers again" if reason is None else f"{_short(where, reason)}; it is tried again"
    print(abridged(f"note: {text}"), file=sys.stderr)


@contextlib.contextmanager
def _until_stopped(seconds: float | None) -> Iterator[threading.Event]:
    """An event that comes with Ctrl-C, with SIGTERM, or when the time is up."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    timer = threading.Timer(seconds, stop.set) if seconds is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield stop
    finally:
        if timer is not None:
            timer.cancel()
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

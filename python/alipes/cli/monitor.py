"""`alipes monitor`: what running servers do, live, and in a file."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from alipes.client import Tls
from alipes.errors import AlipesError
from alipes.monitor.board import Board
from alipes.monitor.columns import chosen
from alipes.monitor.judge import Tally
from alipes.monitor.ledger import Row
from alipes.monitor.recorder import Listener, Recorder
from alipes.monitor.screen import Screen
from alipes.monitor.servers import LATEST, Place, agreed, involved, place


def monitor(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    servers: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVER]...", help="Names or addresses; this machine by default.")
    ] = None,
    model: Annotated[str, typer.Option(help="Watch this model, or the models of this ensemble; all by default.")] = "",
    model_version: Annotated[int, typer.Option(help="Its version; -1 for the latest.")] = LATEST,
    output: Annotated[Path | None, typer.Option(help="Write the record there, as comma-separated values.")] = None,
    columns: Annotated[str, typer.Option(help="Further columns of the record, with commas between, or `all`.")] = "",
    rate: Annotated[float, typer.Option(min=0.01, max=1000, help="Looks a second at each server.")] = 10.0,
    seconds: Annotated[float | None, typer.Option(min=0, help="End after so long, instead of with Ctrl-C.")] = None,
    http_port: Annotated[int, typer.Option(help="Where servers are asked about models.")] = 8000,
    metrics_port: Annotated[int, typer.Option(help="Where their counters are.")] = 8002,
    grpc_port: Annotated[int, typer.Option(help="Where servers without HTTP are asked about models.")] = 8001,
    tls: Annotated[bool, typer.Option("--tls", help="Ask over encrypted connections.")] = False,
    tls_roots: Annotated[
        Path | None, typer.Option(help="Certificates that are trusted; the system's by default.")
    ] = None,
) -> int:
    """Watch what servers do: executions, time in queues and in models, and what holds the work up."""
    try:
        security = Tls(roots=tls_roots) if tls or tls_roots else None
        places = [place(name, http_port, metrics_port, grpc_port, security) for name in servers or ["localhost"]]
        keys = agreed({one.ip: involved(one, model, model_version) for one in places}) if model else None
        wanted = chosen("all" if columns == "all" else [name for name in columns.split(",") if name])
        board, tally = Board(time.time()), Tally()

        def record_rows(rows: Sequence[Row]) -> None:
            board.add(rows)
            for row in rows:
                tally.add(row)

        listener = Listener(rows=record_rows, trouble=_complain)
        record = output.open("w", encoding="utf-8", newline="") if output else contextlib.nullcontext()
        with _until_stopped(seconds) as stop, record as file:
            recorder = Recorder(places, keys, wanted, file, 1 / rate, listener)
            recorder.begin()
            with Screen(board, tally.verdict):
                recorder.run(stop)
    except (AlipesError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if recorder.silent:
        print(f"error: {', '.join(one.ip for one in recorder.silent)} never answered", file=sys.stderr)
        return 1
    return 0


def _complain(where: Place, reason: str | None) -> None:
    print(f"{where.ip} answers again" if reason is None else f"{reason}; it is asked on", file=sys.stderr)


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

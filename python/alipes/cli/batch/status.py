"""`alipes batch status`: how far a run is, from any terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from alipes.cli.amounts import count
from alipes.cli.failures import perform

if TYPE_CHECKING:
    from alipes.batch import Status

__all__ = ["status"]

_COLUMNS = ("shard", "state", "server", "host", "pieces", "rows", "rows/s", "set aside", "reason")


def status(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="Folder of the run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Show how far a run is, and what its clients do."""

    def action() -> int:
        from alipes import batch

        seen = batch.status(folder)
        if as_json:
            print(json.dumps(asdict(seen) | {"clients": msgspec.to_builtins(seen.clients)}, indent=2))
        else:
            _print(seen)
        return 0

    return perform(action)


def _print(seen: Status) -> None:
    from alipes.cli.columns import print_columns

    print(f"{seen.folder}: {'complete' if seen.complete else 'not complete'}")
    print(f"{seen.pieces_done} of {count(seen.pieces, 'piece')}, {count(seen.rows, 'row')}", end="")
    print(f", {seen.set_aside} set aside" if seen.set_aside else "")
    if seen.running:
        left = "" if seen.remaining_s is None else f", about {seen.remaining_s:.0f} s left"
        print(f"{seen.rows_per_s:,.0f} rows/s by {count(len(seen.running), 'client')}{left}")
    rows = [
        (
            str(one.shard),
            one.state,
            one.server,
            f"{one.host}:{one.pid}",
            str(one.pieces),
            str(one.rows),
            f"{one.rows / max(one.seen_s - one.begun_s, 1e-9):.0f}",
            str(one.set_aside),
            one.reason,
        )
        for one in seen.clients
    ]
    if rows:
        print_columns(
            _COLUMNS, rows, right=("shard", "pieces", "rows", "rows/s", "set aside"), spare=("host", "server")
        )

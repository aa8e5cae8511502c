"""The command line: `python -m bench`, from the project's folder."""

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.fleet import Fleet
from bench.load import tool
from bench.load.tool import LoadFailed
from bench.report import machine, page, raw, terminal
from bench.report.run import Run
from bench.results import RowResult
from bench.rows.row import Row
from bench.rows.table import rows
from bench.run import Plan, measure, measurements
from bench.servers import floors, peers
from bench.servers.process import StartFailed
from bench.work import WrongAnswer

NONE = "none"
ALL = "all"
DEFAULT_SOAK = 300_000


def main() -> int:
    """Runs what the command line asks for; returns the exit status."""
    options = _parser().parse_args()
    # A polite request to end is taken like Ctrl-C, so that every server that was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console()
    missing = tool.missing()
    if missing:
        packages = " ".join(tool.PACKAGES[name] for name in missing)
        console.print(f"{', '.join(missing)} not found: `make bench-tools` installs them (packages {packages})")
        return 1
    try:
        run = _run(options, console)
    except (StartFailed, WrongAnswer, LoadFailed) as error:
        console.print(f"[red]the bench stopped[/]: {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started is stopped")
        return 130
    terminal.show(run, console)
    console.print(f"raw data: {raw.write(run)}", soft_wrap=True)
    if options.write_docs:
        console.print(f"page: {page.write(run, [row.facts for row in rows(options.soak)])}", soft_wrap=True)
    return 0


def _run(options: argparse.Namespace, console: Console) -> Run:
    chosen = _choose(rows(options.soak), options.rows)
    plan = Plan(options.rounds, options.seconds)
    wanted = _peers(options.peers)
    date = datetime.now().astimezone().isoformat(timespec="seconds")
    console.print("compiling the floors (minutes the first time)")
    floors.build()
    results: list[RowResult] = []
    # Drawn only between measurements: a refreshing bar would take part in them.
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Fleet(wanted) as fleet, Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=measurements(chosen, 2 + len(wanted), plan))

        def report(title: str, step: str) -> None:
            progress.update(task, description=f"{title}: {step}", advance=1, refresh=True)

        for row in chosen:
            results.append(measure(row, fleet, plan, report))
        skipped = {**{name: "not asked for" for name in peers.ALL if name not in wanted}, **fleet.skipped}
    return Run(date, machine.facts(), plan, results, skipped)


def _choose(known: Sequence[Row], names: str) -> list[Row]:
    if names == ALL:
        return list(known)
    by_name = {row.facts.name: row for row in known}
    return [by_name[name] for name in _named(names, list(by_name), "row")]


def _peers(names: str) -> frozenset[str]:
    if names == NONE:
        return frozenset()
    return frozenset(peers.ALL if names == ALL else _named(names, list(peers.ALL), "peer"))


def _named(text: str, known: Sequence[str], kind: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            sys.exit(f"there is no {kind} {name!r}; there are: {', '.join(known)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", default=ALL, help="names of rows, separated by commas (default: all)")
    parser.add_argument("--peers", default=ALL, help="names of peers, separated by commas, or none (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, contenders in turn (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="time of a contender in a round (%(default)s)")
    parser.add_argument("--soak", type=int, default=DEFAULT_SOAK, help="requests of the memory row (%(default)s)")
    parser.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md, its picture and data")
    return parser


if __name__ == "__main__":
    sys.exit(main())

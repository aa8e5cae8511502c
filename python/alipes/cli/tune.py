"""`alipes tune`: the best configuration of models, found by trials on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from alipes.cli.connection import ApiKey, hold_key
from alipes.cli.failures import INTERRUPTED, CommandFailed, UsageFailed, perform
from alipes.cli.shapes import read_shape
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.tune import Goal, Outcome, Point, Rejected, Results

HELP: Final = """Find the best configuration of models, by trials on servers of this machine.

\b
  alipes tune models --model resnet
  alipes tune models --model resnet --try instances=1,2,4 --try callers=8,32 \\
    --objective rate --limit 'p99_ms<=20'

Each trial starts a server with one configuration and measures it. The chosen configuration, a table and a report are
written into --output, with all trials in history.jsonl: where a search was interrupted, the same command goes on.

Knobs are instances, max_batch_size, queue_delay_us, preferred and engine_threads, and of the load callers, request_rate
and rows. Figures are rate, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, memory_mb, cores, cost and cost_per_hour.
"""

_SHOWN: Final = 10
"""Trials of the table; the file has all."""
_FIGURES: Final = ("rate", "p50_ms", "p99_ms", "memory_mb", "cost", "cost_per_hour")
_HEADINGS: Final = {"rate": "rate", "p50_ms": "p50", "p99_ms": "p99", "cost": "cost/1M", "cost_per_hour": "cost/h"}
"""Short ones, for a terminal."""


def tune(  # noqa: PLR0913, PLR0917  # one parameter is one option
    repository: Annotated[
        str,
        typer.Argument(
            metavar="REPOSITORY",
            help="The folder with the models, which stays as it is; or http:// or grpc:// of a server that runs.",
        ),
    ],
    model: Annotated[
        list[str], typer.Option("--model", metavar="NAME", help="What gets requests; any number, at the same time.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="KNOB=VALUES",
            show_default=False,
            help="What may be chosen, such as instances=1,2,4, or MODEL.max_batch_size=8,16; any number.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective", metavar="FIGURE[:WEIGHT]", show_default=False, help="What counts; rate by default."
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="FIGURE<=NUMBER", show_default=False, help="What has to be kept: p99_ms<=20."),
    ] = None,
    server_hour: Annotated[
        float | None,
        typer.Option("--server-hour", metavar="PRICE", show_default=False, help="What a server costs for an hour."),
    ] = None,
    demand: Annotated[
        float | None,
        typer.Option("--demand", metavar="RATE", show_default=False, help="Inferences per second to be served."),
    ] = None,
    search: Annotated[
        str, typer.Option("--search", metavar="NAME", help="quick climbs, brute tries all, optuna samples.")
    ] = "quick",
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", min=1, metavar="NUMBER", show_default=False, help="Most points; a third of them by default."
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="ROWS", help="Rows in each request.")] = 1,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="INPUT:D,D", help="Sizes that the models leave open; any number."),
    ] = None,
    window: Annotated[float, typer.Option("--window", min=0.01, metavar="SECONDS", help="Length of a window.")] = 1.0,
    windows: Annotated[int, typer.Option("--windows", min=1, metavar="NUMBER", help="Most windows of a trial.")] = 10,
    grpc: Annotated[bool, typer.Option("--grpc", help="Measure over gRPC instead of HTTP.")] = False,
    output: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="Where the results go, and trials to go on from.")
    ] = Path("tuned"),
    api_key: ApiKey = None,
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", help="For what a search draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trials as JSON.")] = False,
) -> int:
    """Find the best configuration of models, by trials on servers of this machine.

    Each trial starts a server with one configuration and measures it. Trials are kept in FOLDER/history.jsonl: where a
    search was interrupted, the same command goes on. The configuration, a table and a report are written there.
    """

    def action() -> int:
        from alipes.loadtest import Measuring, ModelRequests
        from alipes.tune import run

        if search not in ("quick", "brute", "optuna"):
            raise UsageFailed("give --search as quick, brute or optuna", f"got {search!r}")
        hold_key(api_key)
        goal = _goal(objective, limit, server_hour, demand)
        results = run(
            repository,
            [ModelRequests(name, batch=batch, shapes=dict(map(read_shape, shape or ()))) for name in model],
            ranges=_ranges(model[0], values or ()),
            goal=goal,
            search=search,  # type: ignore[arg-type]  # checked above
            trials=trials,
            measuring=Measuring(window, windows),
            protocol="grpc" if grpc else "http",
            history=output / "history.jsonl",
            seed=seed,
            each=shower(goal),
            before=_announce if not as_json else lambda points, most: None,
        )
        written = results.write(output)
        if as_json:
            print(json.dumps(_document(results), indent=2))
        else:
            _print(results, written)
        if results.interrupted:
            return INTERRUPTED
        if results.best is None:
            raise CommandFailed("look at the failures above", "no trial gave figures")
        return 0

    with leaving_on_signals():
        return perform(action)


def _goal(
    objective: Sequence[str] | None, limit: Sequence[str] | None, price: float | None, demand: float | None
) -> Goal:
    from alipes.tune import Goal, Limit, Objective

    objectives = []
    for text in objective or ("rate",):
        metric, colon, weight = text.partition(":")
        try:
            objectives.append(Objective(metric, float(weight) if colon else 1.0))
        except ValueError as error:
            raise UsageFailed(f"write --objective FIGURE or FIGURE:WEIGHT, not {text!r}", str(error)) from error
    return Goal(tuple(objectives), tuple(map(Limit.parse, limit or ())), price, demand)


def _ranges(first: str, texts: Sequence[str]) -> dict[str, dict[str, list[Any]]] | None:
    """`KNOB=1,2` of the first model, `MODEL.KNOB=1,2` of another; `4+8` is one value of `preferred`."""
    found: dict[str, dict[str, list[Any]]] = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        model, _, knob = name.rpartition(".")
        try:
            values = [_value(knob, one) for one in numbers.split(",")]
        except ValueError as error:
            raise UsageFailed(f"write --try KNOB=1,2,4 or MODEL.KNOB=1,2,4, not {text!r}") from error
        found.setdefault(model or first, {})[knob] = values
    return found or None


def _value(knob: str, text: str) -> int | tuple[int, ...]:
    return tuple(map(int, text.split("+"))) if knob == "preferred" else int(text)


def shower(goal: Goal) -> Callable[[Outcome | Rejected], None]:
    """Prints each trial on the error output, and points that are left out once for each reason."""
    reasons: set[str] = set()
    tried: list[Point] = []

    def show(seen: Outcome | Rejected) -> None:
        from alipes.cli.sentences import print_sentence
        from alipes.tune import Rejected

        if isinstance(seen, Rejected):
            if seen.reason not in reasons:
                print_sentence(f"left out: {seen.reason}", file=sys.stderr)
            reasons.add(seen.reason)
            return
        again = ", again" if seen.point in tried else ""
        tried.append(seen.point)
        missed = " (misses a limit)" if not seen.failure and goal.missed(seen.figures) else ""
        print_sentence(
            f"trial {len(tried)}: {seen.point}{again}: {seen.failure or ', '.join(_named(seen))}{missed}",
            file=sys.stderr,
        )

    return show


def _announce(points: int, most: int) -> None:
    """Says how many trials there may be."""
    from alipes.cli.sentences import print_sentence

    print_sentence(
        f"{points:,} point{'s' if points > 1 else ''}, of which {'one is' if most == 1 else f'up to {most:,} are'} "
        "tried, the best ones twice; Ctrl-C ends the search with what is known by then",
        file=sys.stderr,
    )


def _print(results: Results, written: Sequence[Path]) -> None:
    from alipes.cli.columns import print_columns
    from alipes.cli.sentences import print_sentence
    from alipes.tune.goal import figure_of

    # The point comes last: it is long, and the last column is the one that is cut into lines.
    rows = [(*_cells(one), str(one.point)) for one in results.ranked[:_SHOWN]]
    if rows:
        headings = [*(_HEADINGS.get(name, figure_of(name).label) for name in _FIGURES), "point"]
        print_columns(headings, rows, right=headings[:-1])
        print()
    for sentence in results.decisions():
        print_sentence(sentence)
    if results.interrupted:
        print_sentence(f"The search was interrupted after {len(results.outcomes):,} trials; the same command goes on.")
    print_sentence(f"written: {', '.join(map(str, written))}")


def _cells(outcome: Outcome) -> list[str]:
    """The figures of a row; empty where there are none."""
    from alipes.tune.decisions import amount

    return [amount(name, outcome.figures[name]) if name in outcome.figures else "" for name in _FIGURES]


def _named(outcome: Outcome) -> list[str]:
    """The figures that there are, each behind its name, which loses the unit that the figure has."""
    names = [name.removesuffix("_ms").removesuffix("_mb").replace("_", " ") for name in _FIGURES]
    return [f"{name} {cell}" for name, cell in zip(names, _cells(outcome), strict=True) if cell]


def _document(results: Results) -> dict[str, Any]:
    best = results.best
    return {
        "machine": results.machine.to_document(),
        "best": None if best is None else best.to_document(),
        "keeps_limits": results.is_feasible,
        "interrupted": results.interrupted,
        "decisions": results.decisions(),
        "trials": [one.to_document() for one in results.outcomes],
        "left_out": [{"point": one.point.to_document(), "reason": one.reason} for one in results.rejected],
    }

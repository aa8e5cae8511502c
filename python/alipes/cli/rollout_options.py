"""The options of rollouts, and how they are shown and interrupted: between versions in servers, and on clusters."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import Console
from rich.live import Live

from alipes.cli.failures import UsageFailed
from alipes.cli.rollout_view import line_of, table_of

if TYPE_CHECKING:
    from alipes.rollout import Look, Tolerance

__all__ = [
    "AsJson",
    "Confidence",
    "JournalFile",
    "LastStepTime",
    "LookEvery",
    "MaxDrift",
    "MaxErrors",
    "MaxLatency",
    "StepTime",
    "Steps",
    "interruptible",
    "share_of",
    "shares_of",
    "shown",
    "tolerance_of",
]

Steps: TypeAlias = Annotated[
    str,
    typer.Option("--steps", metavar="PERCENT,...", help="Shares of the candidate before it gets all."),
]
StepTime: TypeAlias = Annotated[
    float, typer.Option("--step-time", min=0.1, metavar="SECONDS", help="Longest time of a step but the last.")
]
LastStepTime: TypeAlias = Annotated[
    float, typer.Option("--last-step-time", min=0.1, metavar="SECONDS", help="Longest time of the last step.")
]
LookEvery: TypeAlias = Annotated[
    float, typer.Option("--look-every", min=0.05, metavar="SECONDS", help="Time between two looks.")
]
MaxErrors: TypeAlias = Annotated[
    str, typer.Option("--max-errors", metavar="PERCENT", help="How many more requests may fail.")
]
MaxLatency: TypeAlias = Annotated[
    str, typer.Option("--max-latency", metavar="PERCENT", help="How much the 99th percentile may grow.")
]
MaxDrift: TypeAlias = Annotated[
    float,
    typer.Option("--max-drift", min=0.0, max=1.0, metavar="DISTANCE", help="How far outputs may be apart, 0 to 1."),
]
Confidence: TypeAlias = Annotated[
    float, typer.Option("--confidence", min=0.5, max=0.9999, metavar="SHARE", help="How sure the verdict is.")
]
JournalFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--journal", metavar="FILE", show_default=False, help="Note what happens, and go on there after a break."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the end as JSON.")]


def share_of(flag: str, word: str) -> float:
    """A share from the command line, in per cent there: `1%` or `1` is 0.01.

    Raises:
        UsageFailed: If it is none.
    """
    try:
        return float(word.strip().removesuffix("%")) / 100
    except ValueError as error:
        raise UsageFailed(f"write {flag} in per cent, such as 5 or 0.5%", f"'{word}' is no number") from error


def shares_of(steps: str) -> tuple[float, ...]:
    """The shares of steps, in per cent.

    Raises:
        UsageFailed: If one is none.
    """
    return tuple(round(share_of("--steps", word) * 100, 9) for word in steps.split(","))


def tolerance_of(errors: str, latency: str, drift: float, confidence: float) -> Tolerance:
    """What is tolerated.

    Raises:
        UsageFailed: If a share is none.
    """
    from alipes.rollout import Tolerance

    return Tolerance(share_of("--max-errors", errors), share_of("--max-latency", latency), drift, confidence)


@contextmanager
def shown(*, quiet: bool) -> Iterator[Callable[[Look], None]]:
    """What shows a look: a table that changes on a terminal, a line elsewhere."""
    console = Console(stderr=quiet)
    if quiet:
        yield lambda _: None
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda look: live.update(table_of(look), refresh=True)
    else:
        yield lambda look: print(line_of(look), flush=True)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that the candidate is taken back first."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

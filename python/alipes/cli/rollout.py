"""`alipes rollout`: a version gets more and more of the requests, and all of them once its outcomes are good."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from alipes.cli.certificates import with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.cli.rollout_view import end_of, line_of, table_of
from alipes.errors import AlipesError, InferError

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.rollout import Look, RolloutEnd, RolloutPlan
    from alipes.types import TrafficSplit

__all__ = ["rollout", "share_of", "stable_everywhere", "stable_version"]


@with_certificate
def rollout(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model.")],
    candidate: Annotated[int, typer.Option("--to", metavar="VERSION", help="The version that is to take over.")],
    stable: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="VERSION", show_default=False, help="The version that serves; the one of most weight."
        ),
    ] = None,
    steps: Annotated[
        str,
        typer.Option(
            "--steps", metavar="PERCENT,...", help="Shares of the candidate before it gets all; 0 sends copies."
        ),
    ] = "1,5,25,50",
    step_s: Annotated[
        float, typer.Option("--step-time", min=0.1, metavar="SECONDS", help="Longest time of a step but the last.")
    ] = 60.0,
    last_step_s: Annotated[
        float, typer.Option("--last-step-time", min=0.1, metavar="SECONDS", help="Longest time of the last step.")
    ] = 600.0,
    look_s: Annotated[
        float, typer.Option("--look-every", min=0.05, metavar="SECONDS", help="Time between two looks.")
    ] = 5.0,
    errors: Annotated[
        str, typer.Option("--max-errors", metavar="PERCENT", help="How many more requests may fail.")
    ] = "1%",
    latency: Annotated[
        str, typer.Option("--max-latency", metavar="PERCENT", help="How much the 99th percentile may grow.")
    ] = "20%",
    drift: Annotated[
        float,
        typer.Option("--max-drift", min=0.0, max=1.0, metavar="DISTANCE", help="How far outputs may be apart, 0 to 1."),
    ] = 0.1,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, metavar="SHARE", help="How sure the verdict is.")
    ] = 0.95,
    sticky_header: Annotated[
        str | None,
        typer.Option(
            "--sticky-header", metavar="NAME", show_default=False, help="Keep requests with one value of it together."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Note what happens, and go on there after a break."),
    ] = None,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the end as JSON.")] = False,
) -> int:
    """Give a version more and more of the requests: all if it is good, none if it is worse.

    Returns 0 if the version has all requests, and 1 if the other version has them again. Ctrl-C takes it back. Several
    servers have the same weights and one verdict.
    """

    def action() -> int:
        from alipes.rollout import Journal, RolloutPlan, Tolerance, run_rollout

        shares = tuple(share_of("--steps", word) * 100 for word in steps.split(","))
        allowed = (share_of("--max-errors", errors), share_of("--max-latency", latency), drift, confidence)
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            splits = _splits(client, model)
            before = stable if stable is not None else stable_everywhere(splits, candidate)
            plan = RolloutPlan(
                model, before, candidate, shares, step_s, last_step_s, look_s, sticky_header, Tolerance(*allowed)
            )
            _check_serving(splits, model, (before, candidate))
            with _shown(quiet=as_json) as watch, _interruptible() as stop:
                end = run_rollout(client, plan, Journal(journal), watch, stop)
        _print_end(end, plan, as_json=as_json)
        return 0 if end.promoted else 1

    return perform(action)


def share_of(flag: str, word: str) -> float:
    """A share from the command line, in per cent there: `1%` or `1` is 0.01.

    Raises:
        UsageFailed: If it is none.
    """
    try:
        return float(word.strip().removesuffix("%")) / 100
    except ValueError as error:
        raise UsageFailed(f"write {flag} in per cent, such as 5 or 0.5%", f"'{word}' is no number") from error


def stable_version(split: TrafficSplit, candidate: int) -> int:
    """The version that serves now: the one of most weight, else the highest.

    Raises:
        CommandFailed: If the candidate has most requests already.
    """
    if split.weights:
        stable = max(split.weights, key=lambda version: split.weights[version])
    else:
        stable = max(split.versions, default=candidate)
    if stable == candidate:
        raise CommandFailed(
            "give another version the requests first: alipes models traffic MODEL VERSION=1, or name it with --from",
            f"version {candidate} has them already",
        )
    return stable


def stable_everywhere(splits: Mapping[str, TrafficSplit], candidate: int) -> int:
    """The version that serves now at all servers.

    Args:
        splits: How each server divides the requests, by its address.
        candidate: The version that is to replace it.

    Raises:
        CommandFailed: If it is not the same at all, or the candidate has most requests at one already.
    """
    found = {name: stable_version(split, candidate) for name, split in splits.items()}
    if len(set(found.values())) > 1:
        versions = ", ".join(f"{version} at {name}" for name, version in found.items())
        raise CommandFailed("name the version that serves with --from", f"it is not the same everywhere: {versions}")
    return next(iter(found.values()))


def _splits(client: Client, model: str) -> dict[str, TrafficSplit]:
    """How each server divides the requests: all have to answer, before any weight is changed."""
    from alipes.client.servers.addresses import with_reasons

    found = {}
    for name, server in client.servers().items():
        try:
            found[name] = server.traffic(model)
        except AlipesError as error:
            text = with_reasons({name: f"{error}"})
            error.args = (text,)
            if isinstance(error, InferError):
                error.message = text
            raise
    return found


def _check_serving(splits: Mapping[str, TrafficSplit], model: str, versions: tuple[int, int]) -> None:
    """Refuses a version that does not serve everywhere, before any weight is changed."""
    for name, split in splits.items():
        absent = next((version for version in versions if version not in split.versions), None)
        if absent is not None:
            where = f" at {name}" if len(splits) > 1 else ""
            names = ", ".join(map(str, split.versions))
            raise CommandFailed(
                f"load version {absent} first, with a version_policy that serves it beside the others",
                f"the versions of '{model}' that serve{where}: {names}",
            )


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[Look], None]]:
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
def _interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that the candidate is taken back first."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_end(end: RolloutEnd, plan: RolloutPlan, *, as_json: bool) -> None:
    if not as_json:
        print(end_of(end, plan))
        return
    has_all = plan.candidate if end.promoted else plan.stable
    document: dict[str, Any] = {"promoted": end.promoted, "version": has_all, "reason": end.reason}
    document["servers"] = list(end.servers)
    document["unset"] = {name: f"{error}" for name, error in end.unset.items()}
    print(json.dumps(document, indent=2))

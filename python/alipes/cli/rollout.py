"""`alipes rollout`: a version gets more and more of the requests, and all of them once its outcomes are good."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import CommandFailed, perform
from alipes.cli.rollout_options import (
    AsJson,
    Confidence,
    JournalFile,
    LastStepTime,
    LookEvery,
    MaxDrift,
    MaxErrors,
    MaxLatency,
    Steps,
    StepTime,
    interruptible,
    shares_of,
    shown,
    tolerance_of,
)
from alipes.cli.rollout_view import end_of
from alipes.errors import AlipesError, InferError

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.rollout import RolloutEnd, RolloutPlan
    from alipes.types import TrafficSplit

__all__ = ["rollout", "stable_everywhere", "stable_version"]


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
    steps: Steps = "1,5,25,50",
    step_s: StepTime = 60.0,
    last_step_s: LastStepTime = 600.0,
    look_s: LookEvery = 5.0,
    errors: MaxErrors = "1%",
    latency: MaxLatency = "20%",
    drift: MaxDrift = 0.1,
    confidence: Confidence = 0.95,
    sticky_header: Annotated[
        str | None,
        typer.Option(
            "--sticky-header", metavar="NAME", show_default=False, help="Keep requests with one value of it together."
        ),
    ] = None,
    journal: JournalFile = None,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: AsJson = False,
) -> int:
    """Give a version more and more of the requests: all if it is good, none if it is worse.

    A first step of 0 sends the version copies of requests. Returns 0 if the version has all requests, and 1 if the
    other version has them again. Ctrl-C takes it back. Several servers have the same weights and one verdict.
    """

    def action() -> int:
        from alipes.rollout import Journal, RolloutPlan, run_rollout

        tolerance = tolerance_of(errors, latency, drift, confidence)
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            splits = _splits(client, model)
            before = stable if stable is not None else stable_everywhere(splits, candidate)
            plan = RolloutPlan(
                model, before, candidate, shares_of(steps), step_s, last_step_s, look_s, tolerance, sticky_header
            )
            _check_serving(splits, model, (before, candidate))
            with shown(quiet=as_json) as watch, interruptible() as stop:
                end = run_rollout(client, plan, Journal(journal), watch, stop)
        _print_end(end, plan, as_json=as_json)
        return 0 if end.promoted else 1

    return perform(action)


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


def _print_end(end: RolloutEnd, plan: RolloutPlan, *, as_json: bool) -> None:
    if not as_json:
        print(end_of(end, plan))
        return
    has_all = plan.candidate if end.promoted else plan.stable
    document: dict[str, Any] = {"promoted": end.promoted, "version": has_all, "reason": end.reason}
    document["servers"] = list(end.servers)
    document["unset"] = {name: f"{error}" for name, error in end.unset.items()}
    print(json.dumps(document, indent=2))

"""`alipes deploy kserve rollout`: a canary gets more and more of the requests, and all of them once it is good."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from alipes.cli.connection import ApiKey, Header, read_headers
from alipes.cli.deploy.cluster_options import ClusterOptions
from alipes.cli.deploy.kserve import Canary, Name
from alipes.cli.failures import perform
from alipes.cli.option_groups import with_option_groups
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
from alipes.cli.rollout_view import end_of_canary
from alipes.errors import CloudError

if TYPE_CHECKING:
    from alipes.rollout import RolloutEnd

__all__ = ["rollout"]


@with_option_groups
def rollout(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    canary: Canary = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="NAME", show_default=False, help="Of the model in its servers; NAME if absent."
        ),
    ] = None,
    port: Annotated[int, typer.Option("--server-port", min=1, max=65535, help="Of the HTTP of its servers.")] = 8080,
    steps: Steps = "1,5,25,50",
    step_s: StepTime = 60.0,
    last_step_s: LastStepTime = 600.0,
    look_s: LookEvery = 5.0,
    errors: MaxErrors = "1%",
    latency: MaxLatency = "20%",
    drift: MaxDrift = 0.1,
    confidence: Confidence = 0.95,
    journal: JournalFile = None,
    header: Header = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    *,
    options: ClusterOptions,
) -> int:
    """Give a canary more and more of the requests: all if it is good, none if it is worse.

    With Knative, the canary is the newest revision. Returns 0 if the canary has all requests, and 1 if the other model
    has them again. Ctrl-C takes the canary back.
    """

    def action() -> int:
        from alipes.rollout import Journal
        from alipes.rollout.canary import ended_meanwhile, run_canary_rollout
        from alipes.rollout.plan import CanaryPlan

        tolerance, shares = tolerance_of(errors, latency, drift, confidence), shares_of(steps)
        cluster, events = options.cluster(), Journal(journal)
        try:
            found = cluster.inference_services().canary(name, canary)
        except CloudError as error:
            end = ended_meanwhile(cluster, name, events) if error.reason == "NotFound" else None
            if end is None:
                raise
            return _shown_end(end, name, as_json=as_json)
        plan = CanaryPlan(
            model or name,
            found.stable,
            found.candidate,
            shares,
            step_s,
            last_step_s,
            look_s,
            tolerance,
            service=f"{found.namespace}/{name}",
            digest=found.digest,
            port=port,
            headers=read_headers(header, api_key),
        )
        with shown(quiet=as_json) as watch, interruptible() as stop:
            end = run_canary_rollout(cluster, found, plan, events, watch, stop)
        return _shown_end(end, name, as_json=as_json)

    return perform(action)


def _shown_end(end: RolloutEnd, name: str, *, as_json: bool) -> int:
    if as_json:
        unset = {one: f"{error}" for one, error in end.unset.items()}
        document = {"promoted": end.promoted, "reason": end.reason, "servers": list(end.servers), "unset": unset}
        print(json.dumps(document, indent=2))
    else:
        print(end_of_canary(end, name))
    return 0 if end.promoted else 1

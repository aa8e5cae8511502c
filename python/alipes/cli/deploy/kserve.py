"""`alipes deploy kserve`: what runs servers on KServe, and what is done with its services afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from alipes.cli.deploy.cluster_options import ClusterOptions, WaitOptions
from alipes.cli.deploy.options import Image, Output, Settings, Values, values_of, write
from alipes.cli.deploy.options import Name as NameOption
from alipes.cli.deploy.service_view import show_kserve, show_service
from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.cli.option_groups import with_option_groups
from alipes.errors import CloudError, ConfigError

if TYPE_CHECKING:
    from alipes.autoscale import Sizing
    from alipes.cloud.kubernetes import Cluster
    from alipes.cloud.kubernetes.inference_services import InferenceServices
    from alipes.cloud.kubernetes.kserve_objects import KServeStatus

__all__ = ["kserve_app"]

_HELP: Final = """Write what runs servers on KServe: runtimes, a service, graphs.

\b
  alipes deploy kserve --name iris --format sklearn --storage gs://bucket/iris
  alipes deploy kserve -f values.yaml | alipes deploy apply -
  alipes deploy kserve -f values.yaml --sized-by tuned/history.jsonl --rates 5,400
  alipes deploy kserve status iris

What KServe would refuse, or take and not do, is refused, with all faults at once.
"""

kserve_app: Final = typer.Typer(help=_HELP, short_help="Write what runs servers on KServe, and change it.")

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of the InferenceService.")]
Canary: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[CANARY]", show_default=False, help="Which, where there are several.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Have it checked by the API server; change nothing.")
]


@kserve_app.callback(invoke_without_command=True)
def kserve(  # noqa: PLR0913, PLR0917  # one parameter is one option
    context: typer.Context,
    values: Values = None,
    settings: Settings = None,
    name: NameOption = None,
    image: Image = None,
    model_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", show_default=False, help="Of the model, such as onnx.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="ADDRESS", show_default=False, help="Where the model is.")
    ] = None,
    sized_by: Annotated[
        Path | None,
        typer.Option(
            "--sized-by", metavar="FILE", show_default=False, help="A result of alipes tune, for sizes of Knative's."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", show_default=False, help="Which of the result's models.")
    ] = None,
    p99: Annotated[
        float | None,
        typer.Option("--p99", min=0.0, metavar="MS", show_default=False, help="Latency that 99 of 100 are to keep."),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option("--rates", metavar="LOW,HIGH", show_default=False, help="Requests per second, for the bounds."),
    ] = None,
    output: Output = None,
) -> int:
    """Write the objects; `_HELP` says how."""
    if context.invoked_subcommand is not None:
        return 0

    def action() -> int:
        from alipes.deploy.kserve.objects import kserve_objects
        from alipes.deploy.kserve.reading import described
        from alipes.deploy.yaml_text import yaml_of

        shorthands = {"name": name, "image": image, "predictor.format": model_format, "predictor.storage.uri": storage}
        try:
            sizing = None if sized_by is None else _sizing(sized_by, model, p99, rates)
            objects = kserve_objects(described(values_of(values, settings, shorthands), values, sizing))
        except ConfigError as error:
            print(error.explain(), file=sys.stderr)  # each fault has a line of its own
            raise CommandFailed("nothing was written: mend what is named above") from error
        if sizing is not None:
            _show_reasons(sizing)
        write(yaml_of(objects), output)
        return 0

    return perform(action)


def _sizing(path: Path, model: str | None, p99_ms: float | None, rates: str | None) -> Sizing:
    """Sizes from a result of `alipes tune`."""
    from alipes.autoscale import read_curve, size

    return size(read_curve(path, model), p99_ms, None if rates is None else _rates(rates))


def _show_reasons(sizing: Sizing) -> None:
    from alipes.cli.sentences import print_sentence

    for reason in sizing.reasons:
        print_sentence(reason, file=sys.stderr)


def _rates(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise UsageFailed("write --rates LOW,HIGH, in requests per second, such as 5,400", f"got {text!r}") from error
    if not 0 <= low <= high < float("inf"):
        raise UsageFailed("write --rates LOW,HIGH with the lower rate first", f"got {text!r}")
    return low, high


@kserve_app.command(short_help="Show whether it serves, who gets its requests, and what else it has.")
@with_option_groups
def status(
    name: Name,
    *,
    options: ClusterOptions,
) -> int:
    """Show a service, or those that many models are placed in, with their models, graphs and runtimes.

    What does not serve is shown with the reason. The exit code is 0 if everything serves, and 3 otherwise.
    """

    def action() -> int:
        cluster = options.cluster()
        found = _belonging(cluster, name)
        if found is not None:
            show_kserve(found)
        if found is not None and found.services:
            return 0 if found.is_ready else 3
        service = cluster.inference_services().status(name)  # of somebody else, or there is none
        show_service(service)
        return 0 if service.is_ready else 3

    return perform(action)


def _belonging(cluster: Cluster, name: str) -> KServeStatus | None:
    """What a deployment has on KServe; None where the user may read objects and not list them."""
    from alipes.deploy.belongings import labels_on_kserve

    try:
        return cluster.kserve_objects(labels_on_kserve(name)).status()
    except CloudError as error:
        if error.reason != "Forbidden":
            raise
        return None


@kserve_app.command(short_help="Have more servers, or fewer.")
@with_option_groups
def scale(
    name: Name,
    least: Annotated[int, typer.Argument(metavar="N", min=0, help="Fewest servers.")],
    most: Annotated[int | None, typer.Argument(metavar="[M]", min=1, help="Most; N if absent.")] = None,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Have N servers, or between N and M."""

    def change(services: InferenceServices) -> str:
        services.scale(name, least, most, dry_run=dry_run)
        return f"{least} servers" if most is None or most == least else f"{least} to {most} servers"

    return _changed(name, change, waiting, options, dry_run=dry_run)


@kserve_app.command(short_help="Give a canary so many per cent of the requests.")
@with_option_groups
def share(
    name: Name,
    percent: Annotated[int, typer.Argument(metavar="PERCENT", min=0, max=100, help="Of all requests.")],
    canary: Canary = None,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Give a canary so many per cent of the requests; with Knative, the newest revision. No server starts again."""

    def change(services: InferenceServices) -> str:
        changed = services.share(name, percent, canary, dry_run=dry_run) or "the newest revision"
        return f"{changed} gets {percent} % of the requests"

    return _changed(name, change, waiting, options, dry_run=dry_run)


@kserve_app.command(short_help="Give a canary all requests.")
@with_option_groups
def promote(
    name: Name,
    canary: Canary = None,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Give a canary all requests; its servers are not started again. With Knative, it is the newest revision."""

    def change(services: InferenceServices) -> str:
        return f"{services.promote(name, canary, dry_run=dry_run) or 'the newest revision'} gets all requests"

    return _changed(name, change, waiting, options, dry_run=dry_run)


@kserve_app.command(short_help="Give all requests to the model that was there before.")
@with_option_groups
def rollback(
    name: Name,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Take back the canaries; with Knative, give the newest revision no requests."""

    def change(services: InferenceServices) -> str:
        services.rollback(name, dry_run=dry_run)
        return "the model before gets all requests"

    return _changed(name, change, waiting, options, dry_run=dry_run)


@kserve_app.command(short_help="End its servers, and leave it described.")
@with_option_groups
def stop(
    name: Name,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """End all servers of a service, until `start` brings them back."""

    def change(services: InferenceServices) -> str:
        services.stop(name, dry_run=dry_run)
        return "stopped"

    return _changed(name, change, waiting, options, dry_run=dry_run)


@kserve_app.command(short_help="Have a stopped service serve again.")
@with_option_groups
def start(
    name: Name,
    dry_run: DryRun = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Have a stopped service serve again."""

    def change(services: InferenceServices) -> str:
        services.start(name, dry_run=dry_run)
        return "started"

    return _changed(name, change, waiting, options, dry_run=dry_run)


def _changed(
    name: str,
    change: Callable[[InferenceServices], str],
    waiting: WaitOptions,
    options: ClusterOptions,
    *,
    dry_run: bool,
) -> int:
    """Changes a service, and shows it once KServe has followed."""

    def action() -> int:
        services = options.cluster().inference_services()
        print(f"{'would be: ' if dry_run else ''}{change(services)}")
        if not dry_run:
            show_service(services.wait(name, timeout_s=waiting.timeout) if waiting.wait else services.status(name))
        return 0

    return perform(action)

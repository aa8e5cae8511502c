"""`alipes deploy kserve`: what runs servers on KServe, and what is done with its services afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from alipes.cli.deploy.cluster import Context, Kubeconfig, Namespace, Timeout, Wait, cluster_of
from alipes.cli.deploy.options import Image, Output, Settings, Values, write
from alipes.cli.deploy.service_view import show_service
from alipes.cli.failures import CommandFailed, perform
from alipes.errors import ConfigError

if TYPE_CHECKING:
    from alipes.cloud.kubernetes.inference_services import InferenceServices

__all__ = ["kserve_app"]

_HELP: Final = """Write what runs servers on KServe: runtimes, a service, graphs.

\b
  alipes deploy kserve --name iris --format sklearn --storage gs://bucket/iris
  alipes deploy kserve -f values.yaml | alipes deploy apply -
  alipes deploy kserve status iris

What KServe would refuse, or take and not do, is refused, with all faults at once.
"""

kserve_app: Final = typer.Typer(help=_HELP, short_help="Write what runs servers on KServe, and change it.")

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of the InferenceService.")]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Have it checked by the API server; change nothing.")
]


@kserve_app.callback(invoke_without_command=True)
def kserve(  # noqa: PLR0913, PLR0917  # one parameter is one option
    context: typer.Context,
    values: Values = None,
    settings: Settings = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", show_default=False, help="Its name.")] = None,
    image: Image = None,
    model_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", show_default=False, help="Of the model, such as onnx.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="ADDRESS", show_default=False, help="Where the model is.")
    ] = None,
    output: Output = None,
) -> int:
    """Write the objects; `_HELP` says how."""
    if context.invoked_subcommand is not None:
        return 0

    def action() -> int:
        from alipes.deploy.kserve.objects import kserve_objects
        from alipes.deploy.kserve.reading import described
        from alipes.deploy.reading import read_values, with_settings
        from alipes.deploy.yaml_text import yaml_of

        shorthands = {"name": name, "image": image, "predictor.format": model_format, "predictor.storage.uri": storage}
        chosen = [f"{key}={value}" for key, value in shorthands.items() if value is not None]
        found = with_settings(read_values(values) if values is not None else {}, [*(settings or ()), *chosen])
        try:
            objects = kserve_objects(described(found, values))
        except ConfigError as error:
            print(error.explain(), file=sys.stderr)  # each fault has a line of its own
            raise CommandFailed("nothing was written: mend what is named above") from error
        write(yaml_of(objects), output)
        return 0

    return perform(action)


@kserve_app.command(short_help="Show a service: whether it serves, and who gets its requests.")
def status(
    name: Name,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Show a service, and why it does not serve.

    The exit code is 0 if it serves, and 3 otherwise.
    """

    def action() -> int:
        found = _services(kubeconfig, context, namespace).status(name)
        show_service(found)
        return 0 if found.is_ready else 3

    return perform(action)


@kserve_app.command(short_help="Have more servers, or fewer.")
def scale(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    least: Annotated[int, typer.Argument(metavar="N", min=0, help="Fewest servers.")],
    most: Annotated[int | None, typer.Argument(metavar="[M]", min=1, help="Most; N if absent.")] = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Have N servers, or between N and M."""

    def change(services: InferenceServices) -> str:
        services.scale(name, least, most, dry_run=dry_run)
        return f"{least} servers" if most is None or most == least else f"{least} to {most} servers"

    return _changed(name, change, (kubeconfig, context, namespace), dry_run=dry_run, wait=wait, timeout=timeout)


@kserve_app.command(short_help="Give a canary all requests.")
def promote(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    canary: Annotated[
        str | None, typer.Argument(metavar="[CANARY]", show_default=False, help="Which, where there are several.")
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Give a canary all requests; its servers are not started again. With Knative, it is the newest revision."""

    def change(services: InferenceServices) -> str:
        return f"{services.promote(name, canary, dry_run=dry_run) or 'the newest revision'} gets all requests"

    return _changed(name, change, (kubeconfig, context, namespace), dry_run=dry_run, wait=wait, timeout=timeout)


@kserve_app.command(short_help="Give all requests to the model that was there before.")
def rollback(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Take back the canaries; with Knative, give the newest revision no requests."""

    def change(services: InferenceServices) -> str:
        services.rollback(name, dry_run=dry_run)
        return "the model before gets all requests"

    return _changed(name, change, (kubeconfig, context, namespace), dry_run=dry_run, wait=wait, timeout=timeout)


@kserve_app.command(short_help="End its servers, and leave it described.")
def stop(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """End all servers of a service, until `start` brings them back."""

    def change(services: InferenceServices) -> str:
        services.stop(name, dry_run=dry_run)
        return "stopped"

    return _changed(name, change, (kubeconfig, context, namespace), dry_run=dry_run, wait=wait, timeout=timeout)


@kserve_app.command(short_help="Have a stopped service serve again.")
def start(  # noqa: PLR0913, PLR0917  # one parameter is one option
    name: Name,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> int:
    """Have a stopped service serve again."""

    def change(services: InferenceServices) -> str:
        services.start(name, dry_run=dry_run)
        return "started"

    return _changed(name, change, (kubeconfig, context, namespace), dry_run=dry_run, wait=wait, timeout=timeout)


def _changed(  # one parameter is one option
    name: str,
    change: Callable[[InferenceServices], str],
    place: tuple[Path | None, str | None, str | None],
    *,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
) -> int:
    """Changes a service, and shows it once KServe has followed."""

    def action() -> int:
        services = _services(*place)
        print(f"{'would be: ' if dry_run else ''}{change(services)}")
        if not dry_run:
            show_service(services.wait(name, timeout_s=timeout) if wait else services.status(name))
        return 0

    return perform(action)


def _services(kubeconfig: Path | None, context: str | None, namespace: str | None) -> InferenceServices:
    return cluster_of(kubeconfig, context, namespace).inference_services()

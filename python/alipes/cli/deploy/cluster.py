"""`alipes deploy apply` and what follows it: status, logs, scale and rollback, in a cluster of Kubernetes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from alipes.cli.columns import print_columns
from alipes.cli.deploy.cluster_options import ClusterOptions, WaitOptions
from alipes.cli.deploy.service_view import show_kserve, show_service
from alipes.cli.deploy.status_view import follow, show
from alipes.cli.failures import CommandFailed, perform
from alipes.cli.option_groups import with_option_groups
from alipes.errors import CloudError, ConfigError

if TYPE_CHECKING:
    from alipes.cloud.kubernetes import Cluster
    from alipes.cloud.kubernetes.kserve_objects import KServeStatus
    from alipes.cloud.kubernetes.made import Made

__all__ = [
    "APPLY_HELP",
    "STDIN",
    "apply",
    "documents_in",
    "logs",
    "rollback",
    "scale",
    "status",
]

APPLY_HELP: Final = """Send objects to a cluster, and wait until their servers serve.

\b
  alipes deploy kubernetes --image registry.example.org/models:1 | alipes deploy apply -
  alipes deploy apply models.yaml --dry-run

Everything is checked before anything is sent. Objects are made, or changed to what the file says (server-side apply).
With --dry-run the API server says what it would do, and nothing is made.
"""

STDIN: Final = "-"
"""Stands for standard input where files are named."""
_SERVERS: Final = ("Deployment", "StatefulSet")
"""Kinds whose pods are the servers."""
_SERVICE: Final = "InferenceService"
"""KServe's kind of which it makes servers."""

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of the deployment.")]


@with_option_groups
def apply(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of objects; - is standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make nothing.")] = False,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Send objects; `APPLY_HELP` says how."""

    def action() -> int:
        objects = [each for file in files for each in _checked(file)]
        cluster = options.cluster()
        made = cluster.apply(objects, dry_run=dry_run)
        _print_made(made, "would be " if dry_run else "")
        if waiting.wait and not dry_run:
            for one in made:
                if one.kind in _SERVERS:
                    show(cluster.wait_for_servers(one.name, one.namespace, timeout_s=waiting.timeout))
                elif one.kind == _SERVICE:
                    show_service(cluster.inference_services(one.namespace).wait(one.name, timeout_s=waiting.timeout))
        return 0

    return perform(action)


@with_option_groups
def status(
    name: Name,
    following: Annotated[bool, typer.Option("--follow", "-f", help="Until all servers serve.")] = False,
    *,
    options: ClusterOptions,
) -> int:
    """Show a deployment with its pods, and why those do not serve that do not.

    The exit code is 0 if all servers serve, and 3 otherwise.
    """

    def action() -> int:
        cluster = options.cluster()
        try:
            found = follow(cluster.follow(name)) if following else cluster.status(name)
        except CloudError as error:
            on_kserve = _on_kserve(cluster, name, following=following) if error.reason == "NotFound" else None
            if on_kserve is None:
                raise
            show_kserve(on_kserve)
            return 0 if on_kserve.is_ready else 3
        show(found)
        return 0 if found.is_complete else 3

    return perform(action)


def _on_kserve(cluster: Cluster, name: str, *, following: bool) -> KServeStatus | None:
    """What a deployment has on KServe; None if it has nothing there."""
    from alipes.deploy.belongings import labels_on_kserve

    objects = cluster.kserve_objects(labels_on_kserve(name))
    found = objects.status()
    if following and found.services:
        for one in found.services:
            cluster.inference_services().wait(one.name)
        found = objects.status()
    return found if found.services or found.parts else None


@with_option_groups
def logs(
    name: Name,
    following: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they write.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="LINES", min=0, show_default=False, help="The last lines of each.")
    ] = None,
    *,
    options: ClusterOptions,
) -> int:
    """Print what the servers write, each line behind the name of its pod."""

    def action() -> int:
        for line in options.cluster().logs(name, follow=following, tail=tail):
            print(f"{line.pod}: {line.text}", flush=following)
        return 0

    return perform(action)


@with_option_groups
def scale(
    name: Name,
    replicas: Annotated[int, typer.Argument(metavar="N", min=0, help="How many servers.")],
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Have so many servers."""

    def action() -> int:
        cluster = options.cluster()
        cluster.scale(name, replicas)
        show(cluster.wait_for_servers(name, timeout_s=waiting.timeout) if waiting.wait else cluster.status(name))
        return 0

    return perform(action)


@with_option_groups
def rollback(
    name: Name,
    revision: Annotated[
        int | None, typer.Option("--to", metavar="REVISION", min=1, show_default=False, help="The last one, if absent.")
    ] = None,
    *,
    waiting: WaitOptions,
    options: ClusterOptions,
) -> int:
    """Run the servers of a former revision again."""

    def action() -> int:
        cluster = options.cluster()
        print(f"as in revision {cluster.rollback(name, revision)}")
        show(cluster.wait_for_servers(name, timeout_s=waiting.timeout) if waiting.wait else cluster.status(name))
        return 0

    return perform(action)


def documents_in(file: str) -> list[Mapping[str, Any]]:
    """The objects of a file, or of standard input.

    Raises:
        CommandFailed: If the file cannot be read.
        ConfigError: If it holds something else.
    """
    from alipes.deploy.yaml_text import documents_of

    if file == STDIN:
        return documents_of(sys.stdin.read(), "standard input")
    try:
        return documents_of(Path(file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file} cannot be read", str(error)) from error


def _checked(file: str) -> Sequence[Mapping[str, Any]]:
    """The objects of a file, none of which Kubernetes would refuse for its form."""
    from alipes.deploy.checks import check_objects

    objects = documents_in(file)
    if not objects:
        raise CommandFailed(f"{'standard input' if file == STDIN else file} holds no objects")
    try:
        unknown = check_objects(objects, file)
    except ConfigError as error:
        print(error.explain(), file=sys.stderr)  # each fault has a line of its own
        raise CommandFailed("nothing was sent: mend what is named above") from error
    for kind in unknown:
        print(f"not checked here: {kind} is no kind of Kubernetes itself", file=sys.stderr)
    return objects


def _print_made(made: Sequence[Made], word: str) -> None:
    print_columns(("kind", "name", ""), [(one.kind, one.name, f"{word}{one.change}") for one in made])

"""`alipes deploy remove`: a deployment with everything that belongs to it, on Kubernetes and on KServe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from alipes.cli.columns import print_columns
from alipes.cli.deploy.cluster import STDIN, documents_in
from alipes.cli.deploy.cluster_options import ClusterOptions, Timeout
from alipes.cli.failures import CommandFailed, perform
from alipes.cli.option_groups import with_option_groups

if TYPE_CHECKING:
    from alipes.cloud.kubernetes import Cluster
    from alipes.cloud.kubernetes.kserve_objects import RuntimeUse
    from alipes.cloud.kubernetes.made import Made

__all__ = ["REMOVE_HELP", "remove"]

REMOVE_HELP: Final = """Remove a deployment with everything that belongs to it, or the objects of a file.

\b
  alipes deploy remove models
  alipes deploy remove iris --runtimes
  alipes deploy remove models.yaml

On KServe, these are its services, trained models, graphs, copies of models and its service account. Its runtimes stay,
for other services may use them; with --runtimes those go that no service needs.
"""

_SERVICE: Final = "InferenceService"
_STAY: Final = "the runtimes of KServe stay, which all services share; --runtimes takes away those that none needs"


@with_option_groups
def remove(
    what: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A deployment, or a file of objects; - is a file.")],
    runtimes: Annotated[
        bool, typer.Option("--runtimes", help="Also alipes's runtimes of KServe that no service needs.")
    ] = False,
    timeout: Timeout = None,
    *,
    options: ClusterOptions,
) -> int:
    """Remove; `REMOVE_HELP` says what."""

    def action() -> int:
        cluster = options.cluster()
        is_file = what == STDIN or Path(what).is_file()
        objects: list[Mapping[str, Any]] | list[Made] = documents_in(what) if is_file else _own(cluster, what)
        gone = cluster.remove(objects, timeout_s=timeout)
        uses = _runtime_uses(cluster) if runtimes else []
        gone += cluster.remove([one.runtime for one in uses if not one.services], timeout_s=timeout)
        rows = [(one.kind, one.name, "removed") for one in gone] + [_in_use(one) for one in uses if one.services]
        if rows:
            print_columns(("kind", "name", ""), rows)
        if not gone:
            place = f"nothing of '{what}' is in the namespace '{cluster.namespace}'"
            raise CommandFailed(f"{place}; if it is in another, say --namespace")
        if not runtimes and any(one.kind == _SERVICE for one in gone):
            print(_STAY, file=sys.stderr)
        return 0

    return perform(action)


def _own(cluster: Cluster, name: str) -> list[Made]:
    """What belongs to a deployment: objects of our kinds that carry its label, of Kubernetes by their names alone."""
    from alipes.deploy.belongings import INSTANCE, belongings, labels_on_kserve

    plain = cluster.labelled(belongings(name), INSTANCE, name)
    return [*plain, *cluster.kserve_objects(labels_on_kserve(name)).made()]


def _runtime_uses(cluster: Cluster) -> list[RuntimeUse]:
    from alipes.deploy.belongings import labels_on_kserve

    return cluster.kserve_objects(labels_on_kserve()).runtime_uses()


def _in_use(use: RuntimeUse) -> tuple[str, str, str]:
    first, *others = use.services
    more = f" and {len(others)} more" if others else ""
    return use.runtime.kind, use.runtime.name, f"stays: {first}{more} may need it"

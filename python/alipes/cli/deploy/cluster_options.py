"""The options of commands that ask a cluster: which cluster, and how long they wait for its servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from alipes.cloud.kubernetes import Cluster

__all__ = ["ClusterOptions", "Timeout", "WaitOptions"]

Timeout: TypeAlias = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", show_default=False, help="The longest wait for each deployment."),
]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster a command asks."""

    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NAME", show_default=False, help="The context's, if absent."),
    ] = None
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", show_default=False, help="Of the kubeconfig.")
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="FILE", show_default=False, help="KUBECONFIG or ~/.kube/config, if absent."
        ),
    ] = None

    def cluster(self) -> Cluster:
        """That cluster."""
        from alipes.cloud.kubernetes import Cluster

        return Cluster(self.kubeconfig, context=self.context, namespace=self.namespace)


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """Whether a command waits for servers, and for how long."""

    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all servers serve.")] = True
    timeout: Timeout = None

"""What was made in Google Cloud from here: it costs money until it is removed."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from alipes.cloud.interruption import listed_on_interrupt

__all__ = ["Ledger"]


@dataclass
class Ledger:
    """Clusters and node pools by their full names, in the order in which they were made."""

    paths: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        """Remember one."""
        self.paths.append(path)

    def forget(self, path: str) -> None:
        """Forget one that is gone, with all that belonged to it."""
        self.paths[:] = [one for one in self.paths if one != path and not one.startswith(f"{path}/")]

    def commands(self) -> list[str]:
        """The commands that remove what is there; a cluster takes its node pools along."""
        clusters = {path for path in self.paths if "/nodePools/" not in path}
        own = [path for path in self.paths if path.partition("/nodePools/")[0] not in clusters]
        return [_command(path) for path in (*reversed(own), *sorted(clusters))]

    def interruptible(self) -> AbstractContextManager[None]:
        """Inside, Ctrl-C leaves a list of what is there, and the commands that remove it."""
        return listed_on_interrupt(lambda: self.paths, self.commands)


def _command(path: str) -> str:
    """`gcloud` removing a cluster or a node pool: projects/P/locations/Z/clusters/C[/nodePools/N]."""
    _, project, _, zone, _, cluster, *pool = path.split("/")
    place = [f"--location={zone}", f"--project={project}"]
    if pool:
        return shlex.join(["gcloud", "container", "node-pools", "delete", pool[1], f"--cluster={cluster}", *place])
    return shlex.join(["gcloud", "container", "clusters", "delete", cluster, *place])

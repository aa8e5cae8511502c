"""What was made in a cluster, so that it can be removed: also by a person, after Ctrl-C."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from alipes.cloud.interruption import listed_on_interrupt

__all__ = ["Change", "Made", "interruptible", "removal"]


class Change(StrEnum):
    """What sending an object did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Made:
    """An object of a cluster.

    Attributes:
        kind: Its kind, such as `Deployment`.
        name: Its name.
        namespace: Its namespace; empty for objects of the whole cluster.
        path: Where the API server has it.
        change: What sending it did.
    """

    kind: str
    name: str
    namespace: str
    path: str
    change: Change = Change.CREATED

    def __str__(self) -> str:
        """Kind and name, as messages have them."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def removal(made: Sequence[Made], kubectl: Sequence[str]) -> list[str]:
    """The commands that remove objects, one for each namespace, last made first."""
    by_namespace: dict[str, list[str]] = {}
    for one in reversed(made):
        by_namespace.setdefault(one.namespace, []).append(f"{one.kind.lower()}/{one.name}")
    return [
        shlex.join([*kubectl, "delete", *([f"--namespace={namespace}"] if namespace else []), *names])
        for namespace, names in by_namespace.items()
    ]


def interruptible(made: Sequence[Made], kubectl: Sequence[str]) -> AbstractContextManager[None]:
    """Inside, Ctrl-C leaves a list of the objects that are new, and the commands that remove them.

    Args:
        made: What was made; it may grow meanwhile.
        kubectl: How `kubectl` is called for the cluster.
    """

    def created() -> list[Made]:
        return [one for one in made if one.change is Change.CREATED]

    return listed_on_interrupt(lambda: [str(one) for one in created()], lambda: removal(created(), kubectl))

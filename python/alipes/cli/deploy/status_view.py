"""A deployment as a table: once, or as it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from alipes.cli.columns import print_columns

if TYPE_CHECKING:
    from alipes.cloud.kubernetes.status import Status

__all__ = ["follow", "show"]

_HEADINGS = ("pod", "state", "ready", "restarts", "age", "node")


def show(status: Status) -> None:
    """Prints one line about the deployment, a table of its pods, and why those do not serve that do not."""
    print(_line(status))
    if status.pods:
        print_columns(_HEADINGS, _rows(status), right=("restarts", "age"), spare=("node", "age"))
    for reason in status.reasons:
        print(reason)


def follow(statuses: Iterator[Status]) -> Status:
    """The last status: the first with all servers. Until then a terminal shows the newest, and a pipe each new line."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    last: Status | None = None
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for status in statuses:
            if status.is_complete:
                return status
            if console.is_terminal:
                live.update(Text("\n".join([_line(status), *(_row(row) for row in _rows(status))])), refresh=True)
            elif last is None or _line(status) != _line(last):
                print(_line(status), flush=True)
            last = status
    raise AssertionError("a deployment that is no longer there ends the statuses by an error")


def _line(status: Status) -> str:
    return (
        f"{status.namespace}/{status.name}: {status.ready} of {status.wanted} servers, revision {status.revision}, "
        f"{', '.join(status.images)}{'' if status.is_complete else f': {status.words}'}"
    )


def _rows(status: Status) -> list[tuple[str, ...]]:
    return [
        (pod.name, pod.state, "yes" if pod.is_ready else "no", str(pod.restarts), _age(pod.age_s), pod.node)
        for pod in status.pods
    ]


def _row(cells: tuple[str, ...]) -> str:
    return "  ".join(cell for cell in cells if cell)


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"

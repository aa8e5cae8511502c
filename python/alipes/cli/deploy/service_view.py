"""A service of KServe as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.cli.columns import print_columns

if TYPE_CHECKING:
    from alipes.cloud.kubernetes.inference_status import ServiceStatus
    from alipes.cloud.kubernetes.kserve_objects import KServeStatus

__all__ = ["show_kserve", "show_service"]


def show_kserve(status: KServeStatus) -> None:
    """Prints the services of a deployment, what else it has, and why something does not serve."""
    for service in status.services:
        show_service(service)
    if status.parts:
        rows = [(one.kind, one.name, one.state, one.text) for one in status.parts]
        print_columns(("beside it", "name", "state", ""), rows)


def show_service(status: ServiceStatus) -> None:
    """Prints one line about a service, who gets its requests, and why it does not serve."""
    word = "stopped" if status.is_stopped else "ready" if status.is_ready else "not ready"
    print(", ".join(part for part in (f"{status.namespace}/{status.name}: {word}", status.mode, status.url) if part))
    rows = [(one.name, f"{one.percent} %", one.state) for one in status.shares]
    print_columns(("gets requests", "share", "state"), rows, right=("share",))
    if not status.is_ready and not status.is_stopped:
        for one in status.conditions:
            if one.state != "True" and one.name not in {"Ready", "Stopped"}:
                print(f"not yet: {one.name}")
    for reason in status.reasons:
        print(reason)

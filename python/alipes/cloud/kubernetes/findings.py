"""Why pods do not become ready, as their own objects say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Finding", "in_deployment", "in_events", "in_pod"]

_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"})
_NO_IMAGE: Final = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NO_CONTAINER: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_RESTARTS_OF_A_LOOP: Final = 2
"""A container that ended so often will not do better the next time."""

_NODES_COME: Final = frozenset({"TriggeredScaleUp", "Nominated"})
"""Events by which autoscalers of nodes say that a pod will have its node."""


@dataclass(frozen=True)
class Finding:
    """One reason.

    Attributes:
        reason: Kubernetes' own name for it, such as `Unschedulable`.
        text: A sentence with the object that it is about.
        is_final: Whether it cannot pass by itself.
        may_pass: Whether waiting may help for as long as it takes: it explains, and ends no wait.
        crashed: Pod and container whose last words would help.
    """

    reason: str
    text: str
    is_final: bool = False
    may_pass: bool = False
    crashed: tuple[str, str] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The reason and its object, without numbers that change while it lasts."""
        return self.reason, self.text.partition(":")[0]


def in_deployment(deployment: Mapping[str, Any]) -> Iterator[Finding]:
    """What a deployment says itself: it does not progress, is paused, or may not have its pods."""
    for one in deployment.get("status", {}).get("conditions", ()):
        if one["type"] == "Progressing" and one["status"] == "False":
            yield Finding(one.get("reason", ""), one.get("message", "it does not progress"), is_final=True)
        elif one["type"] == "ReplicaFailure" and one["status"] == "True":
            yield Finding(one.get("reason", ""), f"a pod cannot be made: {one.get('message', '')}")
    if deployment["spec"].get("paused"):
        yield Finding("DeploymentPaused", "it is paused: kubectl rollout resume", is_final=True)


def in_pod(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> Iterator[Finding]:
    """What a pod, and the events about it, say."""
    name = pod["metadata"]["name"]
    status = pod.get("status", {})
    for one in status.get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            nodes_come = any(event.get("reason") in _NODES_COME for event in events)
            text = f"pod {name} has no node: {one.get('message', '')}"
            yield Finding(one.get("reason", "Unschedulable"), text, may_pass=nodes_come)
    if status.get("phase") == "Failed":
        text = f"pod {name} failed: {status.get('message') or status.get('reason') or 'no reason is known'}"
        yield Finding(status.get("reason") or "Failed", text)
    limits = {one["name"]: one.get("resources", {}).get("limits", {}) for one in _containers(pod)}
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield from _in_container(name, container, limits.get(container["name"], {}))
    yield from in_events(events, f"pod {name}", {"Unhealthy", "FailedMount", "FailedAttachVolume"})


def in_events(events: Sequence[Mapping[str, Any]], what: str, reasons: Set[str]) -> Iterator[Finding]:
    """The last event of each of some reasons."""
    latest = {event.get("reason", ""): event for event in events if event.get("reason") in reasons}
    for reason, event in latest.items():
        yield Finding(reason, f"{what}: {event.get('message', '').strip()}", may_pass=True)


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    spec = pod.get("spec", {})
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]


def _in_container(pod: str, container: Mapping[str, Any], limits: Mapping[str, str]) -> Iterator[Finding]:
    where = f"pod {pod}, container {container['name']}"
    state = container.get("state", {})
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated") or {}
    waiting = state.get("waiting", {})
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if ended.get("reason") == "OOMKilled" and not container.get("ready"):
        limit = f"; its limit is {limits['memory']}" if "memory" in limits else ""
        yield Finding("OOMKilled", f"{where} was killed for its memory{limit}", is_final=True)
    elif reason in _IMAGE | _NO_IMAGE:
        text = f"{where}: image {container.get('image', '')} cannot be had: {message or reason}"
        yield Finding(reason, text, is_final=reason in _NO_IMAGE)
    elif reason in _NO_CONTAINER:
        yield Finding(reason, f"{where} cannot be started: {message or reason}")
    elif reason == "CrashLoopBackOff" or (ended.get("exitCode") and not container.get("ready")):
        often = int(container.get("restartCount", 0))
        times = f", started again {often} times" if often else ""
        text = f"{where} ended with exit code {ended.get('exitCode', '?')}{times}"
        is_final = reason == "CrashLoopBackOff" and often >= _RESTARTS_OF_A_LOOP
        yield Finding(reason or "Error", text, is_final, crashed=(pod, container["name"]))

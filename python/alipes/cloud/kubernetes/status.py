"""What a deployment or a stateful set does now, as a table can show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.findings import Finding, in_deployment, in_events
from alipes.cloud.kubernetes.pods import events_about, findings_in, is_ready, pods_of
from alipes.cloud.kubernetes.readiness import deployment_ready, progress_of, replicas_of
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.revisions import current_revision
from alipes.cloud.kubernetes.waiting import Look

__all__ = ["PodState", "Status", "look_at", "status_of"]


@dataclass(frozen=True)
class PodState:
    """A pod.

    Attributes:
        name: Its name.
        node: The node that it runs on; empty before it has one.
        state: `Running`, or what it waits for or ended with, such as `ImagePullBackOff`.
        is_ready: Whether it is sent requests.
        restarts: How often its containers were started again.
        age_s: Seconds since it was made.
    """

    name: str
    node: str
    state: str
    is_ready: bool
    restarts: int
    age_s: float


@dataclass(frozen=True)
class Status:
    """A deployment.

    Attributes:
        name: Its name.
        namespace: Its namespace.
        revision: The number of its newest revision; 0 if that is not known.
        wanted: How many pods it wants.
        ready: How many are available.
        is_complete: Whether all are of the newest revision and available, and no others are left.
        words: How far it has come.
        images: The images of its newest revision.
        pods: Its pods, of all revisions.
        reasons: Why pods are not ready, each in a sentence.
    """

    name: str
    namespace: str
    revision: int
    wanted: int
    ready: int
    is_complete: bool
    words: str
    images: tuple[str, ...]
    pods: tuple[PodState, ...]
    reasons: tuple[str, ...]


def look_at(api: Api, deployment: Document) -> Look[Document]:
    """What a wait for a deployment sees."""
    if deployment_ready(deployment):
        return Look(deployment)
    _, findings = _pods(api, deployment, newest=True)
    return Look(None, progress_of(deployment), (*_of_itself(api, deployment), *findings))


def _of_itself(api: Api, workload: Document) -> list[Finding]:
    """What it says itself; a stateful set says by events alone that it may not make a pod."""
    if workload["kind"] != "StatefulSet":
        return list(in_deployment(workload))
    events = in_events(events_about(api, workload), "a pod cannot be made", {"FailedCreate"})
    return [Finding(one.reason, one.text) for one in events]


def _pods(api: Api, deployment: Document, *, newest: bool) -> tuple[list[Document], list[Finding]]:
    """The pods, and why they are not ready; who may not look at pods can look at deployments all the same."""
    try:
        pods = pods_of(api, deployment, newest=newest)
        return pods, list(findings_in(api, pods))
    except Refused as error:
        if error.status != 403:
            raise
        return [], [Finding(error.reason, f"why is not known: {error}", may_pass=True)]


def status_of(api: Api, deployment: Document) -> Status:
    """A deployment with its pods."""
    pods, of_pods = _pods(api, deployment, newest=False)
    findings = [*_of_itself(api, deployment), *of_pods]
    now = datetime.now(UTC)
    metadata = deployment["metadata"]
    return Status(
        name=metadata["name"],
        namespace=metadata["namespace"],
        revision=_revision(api, deployment),
        wanted=replicas_of(deployment),
        ready=int(deployment.get("status", {}).get("availableReplicas", 0)),
        is_complete=deployment_ready(deployment),
        words=progress_of(deployment),
        images=tuple(one["image"] for one in deployment["spec"]["template"]["spec"]["containers"]),
        pods=tuple(_pod(pod, now) for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))),
        reasons=tuple(dict.fromkeys(finding.text for finding in findings)),
    )


def _revision(api: Api, workload: Document) -> int:
    try:
        return current_revision(api, workload)
    except Refused as error:
        if error.status != 403:
            raise
        return 0


def _pod(pod: Mapping[str, Any], now: datetime) -> PodState:
    status = pod.get("status", {})
    containers: Sequence[Mapping[str, Any]] = [
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ]
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return PodState(
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        state=_state(pod, status, containers),
        is_ready=is_ready(pod),
        restarts=sum(int(one.get("restartCount", 0)) for one in containers),
        age_s=max((now - made).total_seconds(), 0.0),
    )


def _state(pod: Mapping[str, Any], status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> str:
    """The one word that says most."""
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for one in containers:
        state = one.get("state", {})
        ended = state.get("terminated", {})
        if reason := state.get("waiting", {}).get("reason") or (ended.get("exitCode") and ended.get("reason")):
            return str(reason)
    for one in status.get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one.get("reason", "Unschedulable"))
    return str(status.get("reason") or status.get("phase") or "Pending")

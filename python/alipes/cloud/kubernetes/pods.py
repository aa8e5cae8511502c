"""The pods of a deployment or a daemon set, found by what owns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.findings import Finding, in_pod
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import EVENTS, PODS, REPLICA_SETS, item_path

__all__ = ["REVISION", "events_about", "findings_in", "last_line", "owned", "pods_of", "replica_sets_of", "selector_of"]

REVISION: Final = "deployment.kubernetes.io/revision"
_REVISION: Final = "controller-revision-hash"
"""The label of a stateful set's pods that names their revision."""

_MOST_PODS_EXPLAINED: Final = 20
"""Events are asked for pod by pod; of a thousand pods that fail, the first few say why."""


def selector_of(owner: Mapping[str, Any]) -> str:
    """The label selector of a deployment or a daemon set, as a query has it."""
    selector = owner["spec"]["selector"]
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for one in selector.get("matchExpressions", ()):
        key, operator, values = one["key"], one["operator"], ",".join(one.get("values", ()))
        words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(words.get(operator, f"!{key}"))
    return ",".join(parts)


def owned(objects: Sequence[Document], owner: Mapping[str, Any]) -> list[Document]:
    """Those of some objects that belong to another."""
    uid = owner["metadata"]["uid"]
    return [one for one in objects if any(ref["uid"] == uid for ref in one["metadata"].get("ownerReferences", ()))]


def replica_sets_of(api: Api, deployment: Mapping[str, Any]) -> list[Document]:
    """The replica sets of a deployment, one for each of its revisions, oldest first."""
    path = REPLICA_SETS.collection(deployment["metadata"]["namespace"])
    sets = owned(api.get(path, labelSelector=selector_of(deployment))["items"], deployment)
    return sorted(sets, key=revision_of)


def revision_of(one: Mapping[str, Any]) -> int:
    """The number of a deployment's or a replica set's revision; 0 before a controller has seen it."""
    return int(one["metadata"].get("annotations", {}).get(REVISION, 0))


def pods_of(api: Api, workload: Mapping[str, Any], *, newest: bool = False) -> list[Document]:
    """The pods of a deployment or a stateful set: all, or those of its newest revision."""
    path = PODS.collection(workload["metadata"]["namespace"])
    pods: list[Document] = api.get(path, labelSelector=selector_of(workload))["items"]
    if workload["kind"] == "StatefulSet":
        revision = workload.get("status", {}).get("updateRevision") if newest else None
        own = owned(pods, workload)
        return own if revision is None else [pod for pod in own if pod["metadata"]["labels"].get(_REVISION) == revision]
    sets = replica_sets_of(api, workload)
    if newest:
        sets = [one for one in sets if revision_of(one) == revision_of(workload)]
    return [pod for one in sets for pod in owned(pods, one)]


def findings_in(api: Api, pods: Sequence[Document]) -> Iterator[Finding]:
    """Why pods are not ready."""
    unready = [pod for pod in pods if not is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]
    for pod in unready[:_MOST_PODS_EXPLAINED]:
        yield from in_pod(pod, events_about(api, pod))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def events_about(api: Api, one: Mapping[str, Any]) -> list[Document]:
    """The events about an object, oldest first; none where the caller may not read them."""
    metadata = one["metadata"]
    with suppress(Refused):
        path = EVENTS.collection(metadata["namespace"])
        events = api.get(path, fieldSelector=f"involvedObject.uid={metadata['uid']}")["items"]
        return sorted(events, key=_moment)
    return []


def _moment(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def last_line(api: Api, namespace: str, pod: str, container: str) -> str:
    """The last line that a container wrote before it ended; empty if it cannot be had."""
    path = f"{item_path(PODS, namespace, pod)}/log"
    for previous in (True, False):
        with suppress(Refused):
            lines = list(api.lines(path, 10.0, container=container, previous=previous, tailLines=1))
            if lines:
                return lines[-1]
    return ""

"""Jobs, waited for until they end: well, badly, or not at all since none of their pods can be started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.findings import Finding, in_events
from alipes.cloud.kubernetes.made import Made
from alipes.cloud.kubernetes.pods import events_about, findings_in, owned, selector_of
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import JOBS, PODS
from alipes.cloud.kubernetes.waiting import Look, Wait
from alipes.cloud.kubernetes.watched import Watched

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["failure_of", "last_line_of", "look_at_job", "wait_for_job"]

_WAITS_FOR_OTHERS: Final = "exceeded quota"
"""What an event says where a pod may be made once others have ended."""


def wait_for_job(client: ApiClient, made: Made, on_look: Callable[[], None]) -> str:
    """Waits until a job has ended.

    Args:
        client: A client of `kubernetes`.
        made: The job, as `Cluster.apply` lists it.
        on_look: Called again and again meanwhile.

    Returns:
        Why it failed, with the last line that one of its pods wrote; empty where it did not fail.

    Raises:
        CloudError: If it is not there any more, or none of its pods can be started, with the reason.
    """
    api = Api(client)
    job = Watched(api, JOBS, made.namespace, made.name, f"job {made.namespace}/{made.name}")

    def look(api: Api, one: Document) -> Look[Document]:
        on_look()
        return look_at_job(api, one)

    ended = job.wait(Wait(job.what, show=False), look)
    failure = failure_of(ended)
    line = last_line_of(_pods(api, ended) or ()) if failure else ""
    return f"{failure}; the last line of a pod: {line}" if line else failure


def look_at_job(api: Api, job: Document) -> Look[Document]:
    """What a wait for the end of a job sees."""
    if _condition(job, "Complete") or _condition(job, "Failed"):
        return Look(job)
    return Look(None, "it has not ended", tuple(_findings(api, job)))


def failure_of(job: Mapping[str, Any]) -> str:
    """Why a job that has ended failed; empty where it did not."""
    failed = _condition(job, "Failed")
    return str(failed.get("message") or failed.get("reason") or "no reason is known") if failed else ""


def last_line_of(pods: Iterable[Mapping[str, Any]]) -> str:
    """The last line that a container of a pod wrote that failed, as its status has it; empty where none has."""
    ended = [one.get("state", {}).get("terminated", {}) for pod in pods for one in _containers(pod)]
    texts = [str(one.get("message", "")).strip() for one in ended if one.get("exitCode")]
    return next((text.splitlines()[-1].strip() for text in texts if text), "")


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(pod.get("status", {}).get("containerStatuses", ()))


def _pods(api: Api, job: Document) -> list[Document] | None:
    """The pods of a job, or nothing where the account may not look at pods."""
    path = PODS.collection(job["metadata"]["namespace"])
    try:
        return owned(api.get(path, labelSelector=selector_of(job))["items"], job)
    except Refused as error:
        if error.status != 403:
            raise
        return None


def _findings(api: Api, job: Document) -> Iterator[Finding]:
    """Why no pod works; nothing while one does, whose work may be all that there is."""
    pods = _pods(api, job)
    if pods is None:
        return
    phases = [pod.get("status", {}).get("phase") for pod in pods]
    if "Running" in phases:
        return
    if not pods:
        for one in in_events(events_about(api, job), "a pod cannot be made", {"FailedCreate"}):
            yield Finding(one.reason, one.text, may_pass=_WAITS_FOR_OTHERS in one.text)
    for one in findings_in(api, [pod for pod, phase in zip(pods, phases, strict=True) if phase == "Pending"]):
        # A job may wait for a node as long as others have them, but no claim comes by itself.
        is_lasting = "persistentvolumeclaim" in one.text and "not found" in one.text
        yield replace(one, may_pass=True) if one.reason == "Unschedulable" and not is_lasting else one


def _condition(job: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions = job.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), {})

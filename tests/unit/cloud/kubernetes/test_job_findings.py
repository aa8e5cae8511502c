"""What a wait for the end of a job sees: its end, or why none of its pods can be started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.jobs import failure_of, last_line_of, look_at_job
from alipes.cloud.kubernetes.refusals import Refused

RUNNING = {"phase": "Running", "containerStatuses": []}
FAILED = {"phase": "Failed", "containerStatuses": [{"name": "task", "state": {"terminated": {"exitCode": 137}}}]}
NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
PENDING = {"phase": "Pending", "containerStatuses": [{"name": "task", "image": "a:1", "state": NO_IMAGE}]}


def unschedulable(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def job(kind: str = "", **more: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", **more}] if kind else []
    metadata = {"name": "batch", "namespace": "lab", "uid": "7"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {}}}, "status": {"conditions": conditions}}


@dataclass
class Server:
    """An API server with the pods of a job, and events about it."""

    statuses: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    forbidden: bool = False

    def get(self, path: str, **query: str) -> dict[str, Any]:
        if path.endswith("/events"):
            return {"items": self.events if query["fieldSelector"].endswith("=7") else []}
        if self.forbidden:
            raise Refused("pods is forbidden", 403, "Forbidden")
        metadata = {"namespace": "lab", "ownerReferences": [{"uid": "7"}]}
        pods = enumerate(self.statuses)
        return {
            "items": [
                {"metadata": metadata | {"name": f"p{number}", "uid": f"p{number}"}, "status": status}
                for number, status in pods
            ]
        }

    def findings(self) -> list[tuple[str, bool]]:
        """By reason, whether it may pass."""
        seen = look_at_job(cast(Api, self), job())
        assert seen.value is None
        return [(one.reason, one.may_pass) for one in seen.findings]


@pytest.mark.parametrize(
    ("kind", "failure"), [("Complete", ""), ("Failed", "Job has failed indexes"), ("Failed", "FailedIndexes")]
)
def test_a_job_that_has_ended_is_what_was_waited_for(kind: str, failure: str) -> None:
    ended = job(kind, **({"message": failure} if " " in failure else {"reason": failure}))
    assert look_at_job(cast(Api, Server()), ended).value is ended
    assert failure_of(ended) == failure


@pytest.mark.parametrize(
    ("statuses", "findings"),
    [
        ([PENDING, FAILED], [("ImagePullBackOff", False)]),
        ([PENDING, RUNNING], []),
        ([FAILED], []),
        ([unschedulable("0/1 nodes are available: 1 Insufficient cpu.")], [("Unschedulable", True)]),
        ([unschedulable('persistentvolumeclaim "none" not found')], [("Unschedulable", False)]),
    ],
    ids=["image", "one works", "made again", "no room yet", "no claim"],
)
def test_a_reason_counts_while_no_pod_works(statuses: list[dict[str, Any]], findings: list[tuple[str, bool]]) -> None:
    assert Server(statuses).findings() == findings


@pytest.mark.parametrize(
    ("message", "may_pass"), [("violates PodSecurity", False), ("pods is forbidden: exceeded quota: q", True)]
)
def test_pods_that_may_not_be_made_are_a_reason(message: str, may_pass: bool) -> None:
    event = {"reason": "FailedCreate", "message": message, "lastTimestamp": "1"}
    assert Server(events=[event]).findings() == [("FailedCreate", may_pass)]


def test_the_last_line_of_a_pod_that_failed_is_known() -> None:
    ended = [
        {"state": {"terminated": {"exitCode": code, "message": text}}} for code, text in ((0, "done"), (1, "a\nb\n"))
    ]
    assert last_line_of([{"status": {"containerStatuses": [one]}} for one in ended]) == "b"
    assert last_line_of([{"status": RUNNING}, {"status": FAILED}, {}]) == ""


def test_who_may_not_look_at_pods_may_wait_for_a_job() -> None:
    assert Server([PENDING], forbidden=True).findings() == []

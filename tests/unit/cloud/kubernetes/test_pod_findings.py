"""Why pods are not ready: found in their objects."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.cloud.kubernetes.findings import Finding, in_deployment, in_pod

TRUE, FALSE = "True", "False"


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    spec = [{"name": "server", "resources": {"limits": {"memory": "4Gi"}}}]
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": spec},
        "status": {"containerStatuses": list(containers), **status},
    }


def container(**state: Any) -> dict[str, Any]:
    return {"name": "server", "image": "example.test/i:1", "ready": False, "restartCount": 0, **state}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def only(findings: Any) -> Finding:
    (found,) = findings
    assert isinstance(found, Finding)
    return found


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_pulled_is_named(reason: str) -> None:
    found = only(in_pod(pod(container(**waiting(reason, "not found")))))
    assert found.text == "pod p, container server: image example.test/i:1 cannot be had: not found"
    assert (found.reason, found.is_final, found.may_pass) == (reason, False, False)


def test_an_image_name_that_is_none_is_final() -> None:
    assert only(in_pod(pod(container(**waiting("InvalidImageName"))))).is_final


def test_a_missing_secret_is_quoted() -> None:
    found = only(in_pod(pod(container(**waiting("CreateContainerConfigError", 'secret "s" not found')))))
    assert found.text == 'pod p, container server cannot be started: secret "s" not found'


@pytest.mark.parametrize(("often", "is_final"), [(1, False), (2, True)])
def test_a_container_that_keeps_ending_has_its_exit_code(often: int, is_final: bool) -> None:
    state = waiting("CrashLoopBackOff") | {"lastState": ended(3), "restartCount": often}
    found = only(in_pod(pod(container(**state))))
    assert found.text == f"pod p, container server ended with exit code 3, started again {often} times"
    assert (found.is_final, found.crashed) == (is_final, ("p", "server"))


@pytest.mark.parametrize("where", ["state", "lastState"])
def test_a_container_killed_for_memory_has_its_limit(where: str) -> None:
    state = waiting("CrashLoopBackOff") | {where: ended(137, "OOMKilled")}
    found = only(in_pod(pod(container(**state))))
    assert (found.reason, found.is_final) == ("OOMKilled", True)
    assert found.text == "pod p, container server was killed for its memory; its limit is 4Gi"


def test_a_container_that_ended_before_and_is_ready_now_is_no_finding() -> None:
    assert not list(in_pod(pod(container(ready=True, lastState=ended(137, "OOMKilled"), state={"running": {}}))))


def test_the_scheduler_is_quoted() -> None:
    condition = {"type": "PodScheduled", "status": FALSE, "reason": "Unschedulable", "message": "0/2 nodes"}
    found = only(in_pod(pod(conditions=[condition])))
    assert (found.text, found.may_pass) == ("pod p has no node: 0/2 nodes", False)


def test_a_pod_whose_node_is_being_made_may_wait() -> None:
    condition = {"type": "PodScheduled", "status": FALSE, "reason": "Unschedulable", "message": "0/2 nodes"}
    assert only(in_pod(pod(conditions=[condition]), [{"reason": "TriggeredScaleUp"}])).may_pass


def test_a_failed_probe_explains_and_ends_nothing() -> None:
    events = [{"reason": "Unhealthy", "message": f"Readiness probe failed: {code}"} for code in (500, 503)]
    found = only(in_pod(pod(), events))
    assert (found.text, found.may_pass) == ("pod p: Readiness probe failed: 503", True)


def test_an_evicted_pod_says_why() -> None:
    found = only(in_pod(pod(phase="Failed", reason="Evicted", message="The node was low on memory")))
    assert (found.reason, found.text) == ("Evicted", "pod p failed: The node was low on memory")


@pytest.mark.parametrize(
    ("kind", "status", "reason", "is_final"),
    [
        ("Progressing", FALSE, "ProgressDeadlineExceeded", True),
        ("ReplicaFailure", TRUE, "FailedCreate", False),
    ],
)
def test_what_a_deployment_says_itself(kind: str, status: str, reason: str, is_final: bool) -> None:
    condition = {"type": kind, "status": status, "reason": reason, "message": "exceeded quota"}
    found = only(in_deployment({"spec": {}, "status": {"conditions": [condition]}}))
    assert (found.reason, found.is_final) == (reason, is_final)
    assert "exceeded quota" in found.text


def test_a_paused_deployment_never_becomes_ready() -> None:
    assert only(in_deployment({"spec": {"paused": True}})).reason == "DeploymentPaused"

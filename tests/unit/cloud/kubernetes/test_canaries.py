"""A canary of KServe as a service and its pods say it: without Knative a deployment, with Knative a revision."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.cloud.kubernetes.canaries import ServerPod, canary_of, canary_state
from alipes.errors import CloudError

Document = dict[str, Any]


def standard(percent: int = 20, followed: int | None = 20, **predictor: Any) -> Document:
    canary = {"trafficPercent": percent, "predictor": {"name": "next", "model": {"storageUri": "s3://models/2"}}}
    spoken = [{"name": "next", "ready": followed is not None, "trafficPercent": followed or 0}]
    return {
        "metadata": {"name": "iris", "namespace": "team"},
        "spec": {"predictor": {"model": {"storageUri": "s3://models/1"}, **predictor}, "canary": [canary]},
        "status": {"deploymentMode": "Standard", "canaryStatuses": spoken},
    }


def knative(percent: int | None = 20, newest: str = "iris-2", ready: str = "iris-2", share: int = 20) -> Document:
    traffic = [{"revisionName": ready, "percent": share, "latestRevision": True}]
    traffic += [{"revisionName": "iris-1", "percent": 100 - share, "tag": "prev"}]
    revisions = {"latestRolledoutRevision": "iris-1", "latestCreatedRevision": newest, "latestReadyRevision": ready}
    share_of_newest = {} if percent is None else {"canaryTrafficPercent": percent}
    return {
        "metadata": {"name": "iris", "namespace": "team"},
        "spec": {"predictor": {"model": {"storageUri": "s3://models/2"}, **share_of_newest}},
        "status": {"deploymentMode": "Knative", "components": {"predictor": {**revisions, "traffic": traffic}}},
    }


def pod(name: str, labels: dict[str, str], phase: str = "Running", ready: bool = True, **metadata: str) -> Document:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, **metadata},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [
                {"name": "kserve-container", "restartCount": 2},
                {"name": "queue-proxy", "restartCount": 5},
            ],
        },
    }


def test_a_canary_beside_the_predictor_is_known_by_its_deployment() -> None:
    found = canary_of(standard())
    assert (found.stable, found.candidate, found.name) == ("predictor", "next", "next")
    assert (found.label, found.values) == ("app", ("isvc.iris-predictor", "isvc.iris-next-predictor"))
    assert canary_of(standard(name="first")).values[0] == "isvc.iris-first-predictor"


def test_a_share_or_a_scale_makes_no_other_canary() -> None:
    assert canary_of(standard(percent=50, minReplicas=3)) == canary_of(standard())
    other = standard()
    other["spec"]["canary"][0]["predictor"]["model"]["storageUri"] = "s3://models/3"
    assert canary_of(other) != canary_of(standard())
    assert canary_of(standard(model={"storageUri": "s3://models/0"})) != canary_of(standard())


def test_with_knative_the_newest_revision_is_the_canary() -> None:
    found = canary_of(knative())
    assert (found.stable, found.candidate, found.name) == ("iris-1", "iris-2", None)
    assert (found.label, found.values) == ("serving.knative.dev/revision", ("iris-1", "iris-2"))
    with pytest.raises(CloudError, match="InferenceService team/iris has no canary: no revision is newer"):
        canary_of(knative(newest="iris-1", ready="iris-1"))
    with pytest.raises(CloudError, match="has no canary"):
        canary_of(knative(percent=None))


def test_a_share_is_followed_once_kserve_says_so_of_servers_that_are_ready() -> None:
    canary = canary_of(standard())
    assert canary_state(standard(percent=50), canary, []).followed == 20
    assert canary_state(standard(percent=50, followed=50), canary, []).followed == 50
    assert canary_state(standard(followed=None), canary, []).followed is None
    revision = canary_of(knative())
    assert canary_state(knative(percent=50), revision, []).followed == 20
    assert canary_state(knative(percent=50, share=50), revision, []).followed == 50
    assert canary_state(knative(ready="iris-1"), revision, []).followed is None


def test_a_promotion_is_no_removal() -> None:
    canary = canary_of(standard())
    promoted, removed = standard(name="next"), standard()
    for service in (promoted, removed):
        service["spec"].pop("canary")
    assert [
        (state.canary, state.percent, state.is_promoted)
        for state in (canary_state(promoted, canary, []), canary_state(removed, canary, []))
    ] == [(None, None, True), (None, None, False)]
    revision = canary_of(knative())
    assert canary_state(knative(percent=None, share=100), revision, []).is_promoted
    back = canary_state(knative(percent=0, share=0), revision, [])
    assert (back.canary, back.percent, back.is_promoted) == (revision, 0, False)


def test_pods_are_those_that_run_of_both_groups() -> None:
    stable, candidate = {"app": "isvc.iris-predictor"}, {"app": "isvc.iris-next-predictor"}
    pods = [
        pod("a", stable),
        pod("b", candidate, ready=False),
        pod("c", candidate, deletionTimestamp="2026-11-29T22:00:00Z"),
        pod("d", candidate, phase="Pending"),
        pod("e", {"app": "isvc.iris-transformer"}),
    ]
    assert canary_state(standard(), canary_of(standard()), pods).pods == (
        ServerPod("a", "uid-a", is_candidate=False, is_ready=True, restarts=2),
        ServerPod("b", "uid-b", is_candidate=True, is_ready=False, restarts=2),
        ServerPod("c", "uid-c", is_candidate=True, is_ready=False, restarts=2),
    )

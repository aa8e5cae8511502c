"""What `alipes deploy kserve` wrote, shown as one deployment and removed as one, in a real Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from support.command import Done, alipes
from support.kube import ControlPlane

pytestmark = pytest.mark.extra("deploy")

Deploy = Callable[..., Done]
ROOT = "/apis/serving.kserve.io"
RUNTIMES = {"scope": "namespace", "formats": ["onnx"]}
MANY: dict[str, Any] = {
    "name": "shared",
    "runtimes": RUNTIMES,
    "predictor": {"format": "onnx", "resources": {"memory": "2Gi"}},
    "models": {
        "reserve": "1Gi",
        "items": [
            {"name": "ada", "uri": "s3://bucket/ada", "memory": "1Gi"},
            {"name": "bob", "uri": "s3://bucket/bob", "memory": "1Gi"},
        ],
    },
    "graphs": [{"name": "chain", "nodes": {"root": {"kind": "Sequence", "steps": [{"service": "shared-0"}]}}}],
    "account": {"secrets": ["keys"]},
}
ONE: dict[str, Any] = {
    "name": "iris",
    "runtimes": RUNTIMES,
    "predictor": {"format": "onnx", "storage": {"uri": "s3://bucket/iris"}},
    "cache": {"size": "1Gi", "nodeGroups": ["a"]},
}


@pytest.fixture
def deploy(kserve_kinds: ControlPlane, kubernetes: ControlPlane, namespace: str) -> Deploy:
    """`alipes deploy` in the test's namespace, where what is removed goes."""

    def run(*words: str, text: str = "") -> Done:
        return alipes("deploy", *words, f"--kubeconfig={kubernetes.kubeconfig(namespace=namespace)}", text=text)

    return run


def send(deploy: Deploy, values: dict[str, Any]) -> None:
    done = deploy("apply", "-", "--no-wait", text=yaml_of(kserve_objects(described(values))))
    assert done.code == 0, done.err


def left(plane: ControlPlane, namespace: str) -> list[str]:
    """What is there of KServe's kinds, and service accounts."""
    found = []
    for version, plural in (
        *((f"{ROOT}/v1alpha1", kind) for kind in ("inferencegraphs", "trainedmodels", "servingruntimes")),
        (f"{ROOT}/v1alpha1", "localmodelnamespacecaches"),
        (f"{ROOT}/v1beta1", "inferenceservices"),
        ("/api/v1", "serviceaccounts"),
    ):
        items = plane.request("GET", f"{version}/namespaces/{namespace}/{plural}")["items"]
        found += [f"{plural}/{each['metadata']['name']}" for each in items]
    return sorted(found)


def named(done: Done) -> dict[str, list[str]]:
    """What a table says of each name."""
    return {row[1]: row[2:] for row in done.rows if len(row) > 1}


@pytest.mark.slow("the cluster's garbage collector looks for new kinds every 30 s")
def test_a_deployment_goes_whole_and_others_stay(deploy: Deploy, kubernetes: ControlPlane, namespace: str) -> None:
    send(deploy, ONE)
    before = left(kubernetes, namespace)
    send(deploy, MANY)
    gone = deploy("remove", "shared")
    assert gone.code == 0, gone.err
    assert [(row[0], row[1]) for row in gone.rows[1:]] == [
        ("InferenceGraph", "chain"),
        ("TrainedModel", "bob"),
        ("TrainedModel", "ada"),
        ("InferenceService", "shared-1"),
        ("InferenceService", "shared-0"),
        ("ServiceAccount", "shared"),
    ]
    assert "--runtimes takes away those that none needs" in gone.message
    runtime = ["servingruntimes/alipes-models"]
    assert left(kubernetes, namespace) == sorted(before + runtime)

    again = deploy("remove", "shared")
    assert (again.code, again.out) == (1, "")
    assert f"nothing of 'shared' is in the namespace '{namespace}'" in again.message

    # The service names the runtime of its format; nobody needs that of many models any more.
    unneeded = deploy("remove", "shared", "--runtimes")
    assert unneeded.code == 0, unneeded.err
    assert ["ServingRuntime", "alipes-models", "removed"] in unneeded.rows
    assert f"stays: {namespace}/iris may need it" in unneeded.out

    last = deploy("remove", "iris", "--runtimes")
    assert last.code == 0, last.err
    assert {row[0] for row in last.rows[1:]} == {"InferenceService", "LocalModelNamespaceCache", "ServingRuntime"}
    assert left(kubernetes, namespace) == ["serviceaccounts/default"]


def test_a_runtime_stays_for_a_service_that_names_none(
    deploy: Deploy, kubernetes: ControlPlane, namespace: str
) -> None:
    send(deploy, {**ONE, "cache": None})
    path = f"{ROOT}/v1beta1/namespaces/{namespace}/inferenceservices"
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "s3://bucket/other"}
    other = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "other"},
        "spec": {"predictor": {"model": model}},
    }
    kubernetes.request("POST", path, other)
    done = deploy("remove", "iris", "--runtimes")
    assert done.code == 0, done.err
    assert f"stays: {namespace}/other may need it" in done.out
    assert "inferenceservices/other" in left(kubernetes, namespace)


def test_a_file_of_objects_that_are_gone_is_one_sentence(deploy: Deploy, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    unknown = {"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": "a"}}
    file.write_text(yaml_of([*kserve_objects(described(ONE)), unknown]), encoding="utf-8")
    done = deploy("remove", str(file))
    assert (done.code, done.out) == (1, "")
    assert f"nothing of '{file}' is in the namespace '{namespace}'" in done.message


def test_a_deployment_is_shown_with_its_models_graphs_and_runtimes(
    deploy: Deploy, kubernetes: ControlPlane, namespace: str
) -> None:
    send(deploy, {**MANY, "runtimes": {"written": False}})
    before = deploy("kserve", "status", "shared")
    assert before.code == 3, before.err
    assert "shared-0: not ready" in before.out
    assert "shared-1: not ready" in before.out
    rows = named(before)
    assert rows["bob"][:2] == ["not", "ready"]
    assert rows["alipes-models"][0] == "missing"

    send(deploy, MANY)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    place = f"namespaces/{namespace}"
    for path in (
        *(f"{ROOT}/v1beta1/{place}/inferenceservices/shared-{number}" for number in range(2)),
        f"{ROOT}/v1alpha1/{place}/trainedmodels/ada",
        f"{ROOT}/v1alpha1/{place}/inferencegraphs/chain",
    ):
        kubernetes.patch_status(path, ready)
    full = {"type": "MemoryResourceAvailable", "status": "False", "message": "no memory is left"}
    kubernetes.patch_status(f"{ROOT}/v1alpha1/{place}/trainedmodels/bob", {"conditions": [full]})
    shown = deploy("status", "shared")
    assert shown.code == 3, shown.err
    assert "no memory is left" in shown.out
    rows = named(shown)
    assert (rows["ada"], rows["chain"], "alipes-models" in rows) == (["ready"], ["ready"], False)

    kubernetes.patch_status(f"{ROOT}/v1alpha1/{place}/trainedmodels/bob", ready)
    assert deploy("kserve", "status", "shared").code == 0

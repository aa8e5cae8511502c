"""Objects against the schemas of Kubernetes: ours pass in each version, and every fault is named at once."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.deploy import check_objects, described, kubernetes_objects
from alipes.errors import ConfigError
from support.deployment_values import VALUE_SETS

pytestmark = pytest.mark.extra("deploy")


@pytest.mark.parametrize("version", ["1.30", "1.33", "newest"])
def test_what_we_write_is_what_kubernetes_takes(version: str) -> None:
    for values in VALUE_SETS.values():
        unknown = check_objects(kubernetes_objects(described(values)), version=version)
        assert unknown == (["ScaledObject"] if values.get("scaling", {}).get("kind") == "keda" else [])


def test_all_faults_are_named_with_file_and_path() -> None:
    objects: list[dict[str, Any]] = kubernetes_objects(described({}))
    service, _, deployment, _ = objects
    service["spec"]["nonsense"] = 1
    deployment["spec"]["replicas"] = "two"
    deployment["spec"]["template"]["spec"]["containers"][0]["port"] = []
    with pytest.raises(ConfigError) as refused:
        check_objects(objects, "deployment.yaml")
    assert str(refused.value).splitlines() == [
        "Service/alipes.spec: Additional properties are not allowed ('nonsense' was unexpected)",
        "Deployment/alipes.spec.replicas: 'two' is not of type 'integer', 'null'",
        "Deployment/alipes.spec.template.spec.containers[0]: "
        "Additional properties are not allowed ('port' was unexpected)",
    ]
    assert refused.value.explain().startswith("deployment.yaml: ")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ("text", "document 1: expected an object of Kubernetes with apiVersion and kind"),
        ({"kind": "Service"}, "document 1: 'apiVersion' is missing"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {}}, "Service/document 1: 'metadata.name' is missing"),
    ],
    ids=["text", "without a version", "without a name"],
)
def test_a_document_that_is_no_object_says_so(document: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_objects([document])
    assert fault in str(refused.value)


def test_many_faults_are_counted() -> None:
    services = [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"x": 1}}] * 50
    with pytest.raises(ConfigError) as refused:
        check_objects(services)
    assert str(refused.value).splitlines()[-1] == "and 30 more"


def test_a_version_without_schemas_names_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no schemas of Kubernetes 1\.2 are installed; there are those of .*1\.33"):
        check_objects(kubernetes_objects(described({})), version="1.2")

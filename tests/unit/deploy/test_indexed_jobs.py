"""A job of Kubernetes whose pods share some work fits the schemas, and makes again what can be made again."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.deploy import check_objects, described
from alipes.deploy.kubernetes.job import INDEX, indexed_job
from alipes.deploy.kubernetes.pod import Shared
from alipes.deploy.repository_place import Claim

pytestmark = pytest.mark.extra("deploy")


def job(user: int = 1000, groups: tuple[int, ...] = (100, 27), **values: Any) -> dict[str, Any]:
    description = described({"name": "batch", "image": "a:1", **values})
    shared = Shared(Claim("data", "scans"), "/data", user, groups)
    return indexed_job(description, ["python", "-m", "work", INDEX], 6, shared, 85)


@pytest.mark.parametrize("version", ["newest", "1.31"])
def test_a_job_fits_the_schemas(version: str) -> None:
    values = {"secrets": ["keys"], "resources": {"gpus": 1}, "annotations": {"a": "b"}, "environment": {"A": "1"}}
    assert list(check_objects([job(), job(**values)], version=version)) == []


def test_pods_of_a_job_share_a_volume_and_may_write_nowhere_else() -> None:
    spec = job(secrets=["keys"], environment={"A": "1"})["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (6, 6, 3)
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"
    assert container["command"] == ["python", "-m", "work", "$(JOB_COMPLETION_INDEX)"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert {"name": "data", "mountPath": "/data", "subPath": "scans"} in container["volumeMounts"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.mark.parametrize(("user", "groups"), [(1000, (100, 27)), (0, (0,))])
def test_pods_of_a_job_run_as_the_user_of_the_files(user: int, groups: tuple[int, ...]) -> None:
    pod = job(user, groups)["spec"]["template"]["spec"]
    rights = pod["securityContext"]
    assert (rights["runAsUser"], rights["runAsGroup"], rights["fsGroup"]) == (user, groups[0], groups[0])
    assert rights.get("supplementalGroups", []) == list(groups[1:])
    assert rights["runAsNonRoot"] == (user != 0)
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_what_is_to_stop_is_made_again_and_what_cannot_go_on_is_not() -> None:
    rules = job()["spec"]["podFailurePolicy"]["rules"]
    assert [(rule["action"], rule["onExitCodes"]["values"]) for rule in rules] == [("Ignore", [85]), ("FailIndex", [1])]

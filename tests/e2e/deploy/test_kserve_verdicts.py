"""What we write for KServe, judged by KServe's own webhooks and controller, and by a real API server with its kinds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from support.kserve import Rendered, render
from support.kserve_values import REFUSED, SECRETS, VALUE_SETS
from support.kube import Missing

pytestmark = pytest.mark.extra("deploy")

JUDGED = [name for name, (_, _, words) in REFUSED.items() if words]


def judged(objects: list[dict[str, Any]]) -> Rendered:
    """KServe's answer, or a skipped test where its code is not built."""
    try:
        return render([*SECRETS, *objects])
    except Missing as reason:
        pytest.skip(str(reason))


def written(name: str) -> list[dict[str, Any]]:
    """The objects of a description, with the runtimes that it counts on."""
    values = VALUE_SETS[name]
    objects = kserve_objects(described(values))
    if values.get("runtimes") == {"written": False}:
        objects = [*kserve_objects(described(values | {"runtimes": {}}))[:-1], *objects]
    return objects


def container(pod: dict[str, Any], name: str = "kserve-container") -> dict[str, Any]:
    (found,) = [one for one in pod["spec"]["containers"] if one["name"] == name]
    server: dict[str, Any] = found
    return server


@pytest.mark.parametrize("name", VALUE_SETS)
def test_kserve_s_own_code_takes_all_that_we_write(name: str) -> None:
    objects = written(name)
    answer = judged(objects)
    assert answer.refusals == []
    services = sum(one["kind"] == "InferenceService" for one in objects)
    assert answer.steps["reconcile"] == services
    assert answer.steps.get("mutate", 0) + answer.steps.get("validate", 0) >= services


@pytest.mark.parametrize("name", JUDGED)
def test_kserve_s_own_code_refuses_what_we_refuse(name: str) -> None:
    values, _, words = REFUSED[name]
    objects = kserve_objects(msgspec.convert(values, KServe, strict=False))
    assert any(words in refusal for refusal in judged(objects).refusals)


def test_what_kserve_makes_is_a_server_with_the_service_s_name() -> None:
    answer = judged(written("one model"))
    server = container(answer.only("Pod"))
    assert server["args"][:2] == ["--model-name=alipes", "--model-store=/mnt/models"]
    assert server["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert server["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in server["volumeMounts"]}
    assert mounts["/mnt/models"] is True
    assert mounts["/tmp"] is False
    (initializer,) = answer.only("Pod")["spec"]["initContainers"]
    assert initializer["args"] == ["gs://bucket/iris", "/mnt/models"]
    ports = {port["port"]: port["targetPort"] for port in answer.only("Service")["spec"]["ports"]}
    assert ports[80] == 8080
    assert ports[9000] == 9000


def test_canaries_get_servers_of_their_own() -> None:
    answer = judged(written("canaries"))
    pods = {each["metadata"]["name"]: each for each in answer.objects if each["kind"] == "Pod"}
    sources = {name: pod["spec"]["initContainers"][0]["args"][0] for name, pod in pods.items()}
    assert sources == {
        "alipes-predictor-0": "gs://bucket/iris",
        "alipes-next-predictor-0": "gs://bucket/iris-2",
        "alipes-dark-predictor-0": "s3://bucket/iris-3",
    }
    assert container(pods["alipes-dark-predictor-0"])["args"][-1] == "--x=1"


def test_knative_has_the_limits_and_the_share_of_the_newest_revision() -> None:
    answer = judged(written("knative"))
    (service,) = [each for each in answer.objects if each["apiVersion"] == "serving.knative.dev/v1"]
    template = service["spec"]["template"]
    assert template["spec"]["containerConcurrency"] == 5
    assert template["spec"]["timeoutSeconds"] == 60
    annotations = template["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/min-scale"] == "0"
    assert annotations["autoscaling.knative.dev/max-scale"] == "10"
    assert annotations["autoscaling.knative.dev/target"] == "5"
    assert annotations["autoscaling.knative.dev/window"] == "30s"


def test_a_batcher_and_a_logger_come_as_kserve_s_agent() -> None:
    agent = container(judged(written("batcher")).only("Pod"), "agent")
    assert agent["args"][agent["args"].index("--max-batchsize") :][:2] == ["--max-batchsize", "16"]
    agent = container(judged(written("logger")).only("Pod"), "agent")
    assert agent["args"][agent["args"].index("--log-url") :][:2] == ["--log-url", "http://sink"]


def test_many_models_are_loaded_by_kserve_s_agent() -> None:
    answer = judged(written("many models"))
    pods = {each["metadata"]["name"]: each for each in answer.objects if each["kind"] == "Pod"}
    assert set(pods) == {"alipes-0-predictor-0", "alipes-1-predictor-0"}
    for pod in pods.values():
        assert "--enable-puller" in container(pod, "agent")["args"]
        assert "--model-control-mode=explicit" in container(pod)["args"]

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


def objects_of(name: str) -> list[dict[str, Any]]:
    """The objects of a description, with the runtimes that it counts on; also of one that we would refuse."""
    values = VALUE_SETS[name] if name in VALUE_SETS else REFUSED[name][0]
    written = kserve_objects(msgspec.convert(values, KServe, strict=False))
    if values.get("runtimes") == {"written": False}:
        written = [*kserve_objects(described(values | {"runtimes": {}}))[:-1], *written]
    return written


@pytest.fixture(scope="module")
def answers() -> dict[str, Rendered]:
    """KServe's answer to each description, as if it were alone in a cluster."""
    names = [*VALUE_SETS, *JUDGED]
    try:
        found = render(*([*SECRETS, *objects_of(name)] for name in names))
    except Missing as reason:
        pytest.skip(str(reason))
    return dict(zip(names, found, strict=True))


def container(pod: dict[str, Any], name: str = "kserve-container") -> dict[str, Any]:
    (found,) = [one for one in pod["spec"]["containers"] if one["name"] == name]
    server: dict[str, Any] = found
    return server


@pytest.mark.parametrize("name", VALUE_SETS)
def test_kserve_s_own_code_takes_all_that_we_write(answers: dict[str, Rendered], name: str) -> None:
    answer = answers[name]
    assert answer.refusals == []
    services = sum(one["kind"] == "InferenceService" for one in objects_of(name))
    assert answer.steps["reconcile"] == services
    assert answer.steps.get("mutate", 0) + answer.steps.get("validate", 0) >= services


@pytest.mark.parametrize("name", JUDGED)
def test_kserve_s_own_code_refuses_what_we_refuse(answers: dict[str, Rendered], name: str) -> None:
    _, _, words = REFUSED[name]
    assert any(words in refusal for refusal in answers[name].refusals)


def test_what_kserve_makes_is_a_server_with_the_service_s_name(answers: dict[str, Rendered]) -> None:
    answer = answers["one model"]
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


def test_canaries_get_servers_of_their_own(answers: dict[str, Rendered]) -> None:
    answer = answers["canaries"]
    pods = {each["metadata"]["name"]: each for each in answer.objects if each["kind"] == "Pod"}
    sources = {name: pod["spec"]["initContainers"][0]["args"][0] for name, pod in pods.items()}
    assert sources == {
        "alipes-predictor-0": "gs://bucket/iris",
        "alipes-next-predictor-0": "gs://bucket/iris-2",
        "alipes-dark-predictor-0": "s3://bucket/iris-3",
    }
    assert container(pods["alipes-dark-predictor-0"])["args"][-1] == "--x=1"


def test_knative_has_the_limits_and_the_share_of_the_newest_revision(answers: dict[str, Rendered]) -> None:
    answer = answers["knative"]
    (service,) = [each for each in answer.objects if each["apiVersion"] == "serving.knative.dev/v1"]
    template = service["spec"]["template"]
    assert template["spec"]["containerConcurrency"] == 5
    assert template["spec"]["timeoutSeconds"] == 60
    annotations = template["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/min-scale"] == "0"
    assert annotations["autoscaling.knative.dev/max-scale"] == "10"
    assert annotations["autoscaling.knative.dev/target"] == "5"
    assert annotations["autoscaling.knative.dev/window"] == "30s"


def test_a_batcher_is_the_server_s_own_without_an_agent(answers: dict[str, Rendered]) -> None:
    pod = answers["batcher"].only("Pod")
    assert [one["name"] for one in pod["spec"]["containers"]] == ["kserve-container"]
    assert "--backend-config=default-max-batch-size=16" in container(pod)["args"]


def test_a_logger_comes_as_kserve_s_agent(answers: dict[str, Rendered]) -> None:
    agent = container(answers["logger"].only("Pod"), "agent")
    assert agent["args"][agent["args"].index("--log-url") :][:2] == ["--log-url", "http://sink"]


def test_many_models_are_loaded_by_kserve_s_agent(answers: dict[str, Rendered]) -> None:
    answer = answers["many models"]
    pods = {each["metadata"]["name"]: each for each in answer.objects if each["kind"] == "Pod"}
    assert set(pods) == {"alipes-0-predictor-0", "alipes-1-predictor-0"}
    for pod in pods.values():
        assert "--enable-puller" in container(pod, "agent")["args"]
        assert "--model-control-mode=explicit" in container(pod)["args"]

"""`alipes deploy kserve` and a real API server with KServe's kinds, where the test says what its controller would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from support.command import Done, alipes
from support.kserve_values import VALUE_SETS
from support.kube import VISITOR, ControlPlane

pytestmark = pytest.mark.extra("deploy")

Deploy = Callable[..., Done]
URL = "http://iris.example.org"
IRIS = {"format": "sklearn", "storage": {"uri": "gs://bucket/1"}, "scaling": {"least": 2, "most": 4}}
CANARY = {"name": "next", "percent": 20, "storage": {"uri": "gs://bucket/2"}, "replicas": 1}
VALUES: dict[str, Any] = {"name": "iris", "predictor": IRIS, "runtimes": {"written": False}}


@pytest.fixture
def deploy(kserve_kinds: ControlPlane, namespace: str) -> Deploy:
    """`alipes deploy` in the test's namespace."""

    def run(*words: str, text: str = "", user: str = "admin") -> Done:
        return alipes("deploy", *words, f"--kubeconfig={kserve_kinds.kubeconfig(user, namespace)}", text=text)

    return run


class Service:
    """The InferenceService `iris`, and what KServe's controller would say of it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self.path = f"/apis/serving.kserve.io/v1beta1/namespaces/{namespace}/inferenceservices/iris"

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self._plane.request("GET", self.path)
        return found

    def says(self, *, ready: bool = True, canaries: Mapping[str, int] | None = None, **status: Any) -> None:
        conditions = [
            {"type": name, "status": "True" if ready else "False"}
            for name in ("PredictorReady", "IngressReady", "Ready")
        ]
        seen = [{"name": name, "ready": True, "trafficPercent": share} for name, share in (canaries or {}).items()]
        body = {"conditions": conditions, "canaryStatuses": seen, "url": URL, "deploymentMode": "Standard", **status}
        self._plane.patch_status(self.path, body)


@pytest.fixture
def service(kserve_kinds: ControlPlane, namespace: str) -> Service:
    return Service(kserve_kinds, namespace)


def send(deploy: Deploy, values: dict[str, Any]) -> None:
    done = deploy("apply", "-", "--no-wait", text=yaml_of(kserve_objects(described(values))))
    assert done.code == 0, done.err


def test_a_real_api_server_takes_every_kind_that_we_write(deploy: Deploy) -> None:
    objects = [
        each
        for number, values in enumerate(VALUE_SETS.values())
        for each in kserve_objects(
            described({"runtimes": {"written": number == 0}} | values | {"name": f"case-{number}"})
        )
    ]
    done = deploy("apply", "-", "--dry-run", text=yaml_of(objects))
    assert done.code == 0, done.err
    assert done.out.count("would be created") == len(objects)
    kinds = {row[0] for row in done.rows[1:]}
    assert kinds >= {"ClusterServingRuntime", "ServingRuntime", "InferenceService", "InferenceGraph", "TrainedModel"}
    assert kinds >= {"LocalModelCache", "LocalModelNamespaceCache", "ServiceAccount"}


def test_a_service_is_sent_and_waited_for(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES)
    before = deploy("kserve", "status", "iris")
    assert before.code == 3
    assert "iris: not ready" in before.out
    service.says()
    again = deploy("apply", "-", "--timeout=100", text=yaml_of(kserve_objects(described(VALUES))))
    assert again.code == 0, again.err
    assert f"iris: ready, Standard, {URL}" in again.out
    assert ["predictor", "100", "%", "ready"] in again.rows


def test_a_service_is_scaled_between_bounds(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES)
    service.says()
    assert deploy("kserve", "scale", "iris", "3", "8").code == 0
    assert bounds(service) == (3, 8)
    assert deploy("kserve", "scale", "iris", "5", "--dry-run").out.startswith("would be: 5 servers")
    assert bounds(service) == (3, 8)
    assert deploy("kserve", "scale", "iris", "5").code == 0
    assert bounds(service) == (5, 5)
    refused = deploy("kserve", "scale", "iris", "5", "2")
    assert (refused.code, "at least 5 and at most 2" in refused.message) == (1, True)
    # What was scaled from here may be applied again.
    send(deploy, VALUES)
    assert bounds(service) == (2, 4)


def bounds(service: Service) -> tuple[int, int]:
    predictor = service.read()["spec"]["predictor"]
    return predictor["minReplicas"], predictor["maxReplicas"]


def test_a_canary_is_shown_and_promoted_under_its_name(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES | {"canaries": [CANARY]})
    service.says(canaries={"next": 20})
    shown = deploy("kserve", "status", "iris")
    assert shown.code == 0
    assert [row[:4] for row in shown.rows[2:4]] == [["predictor", "80", "%", "ready"], ["next", "20", "%", "ready"]]

    assert deploy("kserve", "promote", "iris", "--dry-run").code == 0
    assert len(service.read()["spec"]["canary"]) == 1
    done = deploy("kserve", "promote", "iris", "--no-wait")
    assert done.code == 0, done.err
    assert "next gets all requests" in done.out
    spec = service.read()["spec"]
    assert "canary" not in spec
    assert spec["predictor"]["name"] == "next"
    assert spec["predictor"]["model"]["storageUri"] == "gs://bucket/2"
    assert "name" not in spec["predictor"]["model"]
    assert bounds(service) == (2, 4)


def test_a_canary_gets_more_and_more_requests(deploy: Deploy, service: Service) -> None:
    dark = CANARY | {"name": "dark", "percent": 0, "storage": {"uri": "gs://bucket/3"}}
    send(deploy, VALUES | {"canaries": [CANARY]})
    service.says(canaries={"next": 20})
    assert deploy("kserve", "share", "iris", "50", "--dry-run").out.startswith(
        "would be: next gets 50 % of the requests"
    )
    assert percentages(service) == {"next": 20}
    done = deploy("kserve", "share", "iris", "50", "--no-wait")
    assert (done.code, done.out.splitlines()[0]) == (0, "next gets 50 % of the requests")
    assert percentages(service) == {"next": 50}
    send(deploy, VALUES | {"canaries": [CANARY, dark]})
    assert "say which of next, dark" in deploy("kserve", "share", "iris", "30").message
    assert deploy("kserve", "share", "iris", "30", "dark", "--no-wait").code == 0
    assert percentages(service) == {"next": 20, "dark": 30}
    assert deploy("kserve", "share", "iris", "101", "dark").code == 2


def percentages(service: Service) -> dict[str, int]:
    return {one["predictor"]["name"]: one["trafficPercent"] for one in service.read()["spec"]["canary"]}


def test_a_promoted_service_is_what_its_description_then_says(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES | {"canaries": [CANARY]})
    assert deploy("kserve", "promote", "iris", "--no-wait").code == 0
    promoted = service.read()["spec"]
    send(deploy, VALUES | {"predictor": IRIS | {"name": "next", "storage": CANARY["storage"]}})
    assert service.read()["spec"] == promoted


def test_one_of_several_canaries_is_named(deploy: Deploy, service: Service) -> None:
    dark = CANARY | {"name": "dark", "percent": 0, "storage": {"uri": "gs://bucket/3"}}
    send(deploy, VALUES | {"canaries": [CANARY, dark]})
    assert "say which of next, dark" in deploy("kserve", "promote", "iris").message
    assert "has no canary 'other'; it has next, dark" in deploy("kserve", "promote", "iris", "other").message
    assert deploy("kserve", "promote", "iris", "dark", "--no-wait").code == 0
    (left,) = service.read()["spec"]["canary"]
    assert left["predictor"]["name"] == "next"


def test_a_rollback_takes_the_canaries_back(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES | {"canaries": [CANARY]})
    service.says(canaries={"next": 20})
    done = deploy("kserve", "rollback", "iris", "--no-wait")
    assert done.code == 0, done.err
    spec = service.read()["spec"]
    assert "canary" not in spec
    assert spec["predictor"]["model"]["storageUri"] == "gs://bucket/1"
    again = deploy("kserve", "rollback", "iris")
    assert (again.code, "has no canary to take back" in again.message) == (1, True)


def test_with_knative_the_newest_revision_gets_all_requests_or_none(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES | {"mode": "Knative", "predictor": IRIS | {"canaryPercent": 10}})
    traffic = [{"revisionName": "iris-2", "percent": 10}, {"revisionName": "iris-1", "percent": 90}]
    service.says(deploymentMode="Knative", components={"predictor": {"traffic": traffic}})
    shown = deploy("kserve", "status", "iris")
    assert [row[:2] for row in shown.rows[2:4]] == [["iris-2", "10"], ["iris-1", "90"]]
    done = deploy("kserve", "share", "iris", "40")
    assert (done.code, done.out.splitlines()[0]) == (0, "the newest revision gets 40 % of the requests")
    assert service.read()["spec"]["predictor"]["canaryTrafficPercent"] == 40
    assert deploy("kserve", "rollback", "iris").code == 0
    assert service.read()["spec"]["predictor"]["canaryTrafficPercent"] == 0
    assert deploy("kserve", "promote", "iris").code == 0
    assert "canaryTrafficPercent" not in service.read()["spec"]["predictor"]


def test_a_service_is_stopped_and_started(deploy: Deploy, service: Service) -> None:
    send(deploy, VALUES)
    service.says()
    done = deploy("kserve", "stop", "iris", "--no-wait")
    assert done.code == 0, done.err
    assert "iris: stopped" in done.out
    assert service.read()["metadata"]["annotations"]["serving.kserve.io/stop"] == "true"
    assert deploy("kserve", "start", "iris", "--timeout=100").code == 0
    assert "serving.kserve.io/stop" not in service.read()["metadata"]["annotations"]


def failed_to_load(deploy: Deploy, service: Service) -> None:
    """A service whose model KServe's controller cannot serve."""
    send(deploy, VALUES)
    failure = {"reason": "ModelLoadFailed", "message": "no model.joblib in /mnt/models"}
    states = {"activeModelState": "", "targetModelState": "FailedToLoad"}
    failed = {"transitionStatus": "BlockedByFailedLoad", "lastFailureInfo": failure, "states": states}
    service.says(ready=False, modelStatus=failed)


def test_why_a_model_cannot_be_served_is_shown(deploy: Deploy, service: Service) -> None:
    failed_to_load(deploy, service)
    shown = deploy("kserve", "status", "iris")
    assert shown.code == 3
    assert "the model cannot be served: no model.joblib in /mnt/models" in shown.out
    assert "not yet: PredictorReady" in shown.out


@pytest.mark.proof
def test_a_model_that_cannot_be_served_ends_the_wait_with_the_reason(deploy: Deploy, service: Service) -> None:
    failed_to_load(deploy, service)
    done = deploy("kserve", "start", "iris")  # once the reason has lasted
    assert done.code == 1
    assert "no model.joblib in /mnt/models" in done.message


def test_what_is_not_there_or_not_allowed_is_one_sentence(deploy: Deploy) -> None:
    for verb in (["status"], ["scale", "2"], ["share", "5"], ["promote"], ["rollback"], ["stop"], ["start"]):
        words = [verb[0], "nobody", *verb[1:]]
        done = deploy("kserve", *words)
        assert (done.code, done.out) == (1, "")
        assert "there is no InferenceService" in done.message
    done = deploy("kserve", "status", "iris", user=VISITOR)
    assert done.code == 1
    assert "visitor" in done.err


def test_the_command_writes_what_the_description_says(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("name: iris\npredictor:\n  storage:\n    uri: gs://bucket/1\n", encoding="utf-8")
    done = alipes("deploy", "kserve", f"--values={file}", "--format=sklearn", "--set=predictor.scaling.least=2")
    expected = {"name": "iris", "predictor": {**IRIS, "scaling": {"least": 2}}}
    assert done.out == yaml_of(kserve_objects(described(expected)))
    output = tmp_path / "iris.yaml"
    assert alipes("deploy", "kserve", f"--values={file}", f"--output={output}").code == 0
    assert "kind: InferenceService" in output.read_text(encoding="utf-8")


def test_the_command_names_every_fault_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("mode: Serverless\npredictor:\n  nonsense: 1\n", encoding="utf-8")
    done = alipes("deploy", "kserve", "-f", str(file), "--format=pickle")
    assert (done.code, done.out) == (1, "")
    assert f"{file}: mode: 'Serverless' is none of Knative, Standard\n" in done.err
    assert "predictor.format: 'pickle' is none of lightgbm, mlflow, onnx," in done.err
    assert "predictor: Object contains unknown field `nonsense`\n" in done.err
    assert "nothing was written" in done.message

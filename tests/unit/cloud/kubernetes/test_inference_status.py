"""When a service of KServe counts as following its description: its own word is not enough, for it may be of before."""

from __future__ import annotations

from typing import Any, cast

import pytest
from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.inference_status import look_at_service
from alipes.cloud.kubernetes.refusals import Refused

Document = dict[str, Any]
CANARY = {"trafficPercent": 20, "predictor": {"name": "next", "minReplicas": 1}}
SPOKEN = {"name": "next", "ready": True, "trafficPercent": 20}


class Answers:
    """An API server with some objects by their names, and nothing else."""

    def __init__(self, objects: dict[str, Document], status: int = 404) -> None:
        self._objects = objects
        self._status = status

    def get(self, path: str, **_: object) -> Document:
        name = path.rpartition("/")[2]
        if name == "pods":
            return {"items": []}
        if name not in self._objects:
            raise Refused("there is none", self._status)
        return self._objects[name]


def service(scaler: str = "none", *, least: int = 2, ready: bool = True, **parts: Any) -> Document:
    annotations = {"serving.kserve.io/autoscalerClass": scaler}
    model = {"storageUri": "gs://bucket/2"}
    spec = {"predictor": {"minReplicas": least, "model": model}, "canary": parts.pop("canary", [])}
    conditions = [{"type": "Ready", "status": str(ready)}, {"type": "PredictorReady", "status": str(ready)}]
    metadata = {"name": "iris", "namespace": "n", "annotations": annotations}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": conditions, **parts}}


def deployment(replicas: int = 2, *, model: str = "gs://bucket/2", available: int | None = None) -> Document:
    source = {"internal.serving.kserve.io/storage-initializer-sourceuri": model}
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
    counts |= {} if available is None else {"availableReplicas": available}
    return {
        "metadata": {"generation": 1},
        "spec": {"replicas": replicas, "template": {"metadata": {"annotations": source}}},
        "status": {"observedGeneration": 1, **counts},
    }


def follows(one: Document, servers: Document | None = None, *, name: str = "iris-predictor", status: int = 404) -> bool:
    api = cast(Api, Answers({} if servers is None else {name: servers}, status))
    return look_at_service(api, one).value is not None


def test_servers_of_the_described_model_and_number_follow() -> None:
    assert follows(service(), deployment())
    assert not follows(service(ready=False), deployment())


def test_servers_of_the_model_before_do_not_follow() -> None:
    assert not follows(service(), deployment(model="gs://bucket/1"))


def test_fewer_servers_than_described_do_not_follow() -> None:
    assert not follows(service(least=3), deployment(2))
    assert not follows(service(), deployment(2, available=1))
    assert follows(service("hpa"), deployment(5))


def test_another_scaler_decides_by_itself_how_many_follow() -> None:
    assert follows(service("external", least=3), deployment(1))


def test_servers_of_canaries_come_off_the_fewest() -> None:
    one = service(canary=[CANARY], canaryStatuses=[SPOKEN])
    assert follows(one, deployment(1))
    assert not follows(service(least=3, canary=[CANARY], canaryStatuses=[SPOKEN]), deployment(1))


@pytest.mark.parametrize("spoken", [[], [SPOKEN | {"ready": False}], [SPOKEN | {"trafficPercent": 10}]], ids=str)
def test_canaries_that_kserve_does_not_speak_of_do_not_follow(spoken: list[Document]) -> None:
    assert not follows(service(canary=[CANARY], canaryStatuses=spoken), deployment(1))


def test_a_canary_that_is_gone_is_waited_for() -> None:
    assert not follows(service(canaryStatuses=[SPOKEN]), deployment())


@pytest.mark.parametrize("status", [403, 404])
def test_without_a_deployment_kserve_s_word_counts(status: int) -> None:
    assert follows(service(), status=status)


def test_a_promoted_predictor_has_servers_of_its_name() -> None:
    one = service()
    one["spec"]["predictor"]["name"] = "next"
    assert not follows(one, deployment(model="gs://bucket/1"), name="iris-next-predictor")


def test_a_stopped_service_is_waited_for() -> None:
    one = service(ready=False)
    one["metadata"]["annotations"]["serving.kserve.io/stop"] = "true"
    assert not follows(one)
    one["status"]["conditions"].append({"type": "Stopped", "status": "True"})
    assert follows(one)

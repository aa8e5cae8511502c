"""Our server behind Knative's own autoscaler, activator and queue-proxy: sizes, from zero and back, no lost request."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import pytest
from alipes.autoscale import ServiceCurve, size
from alipes.deploy.kserve.container import METRICS_PORT
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from support.exposition import samples_at
from support.knative_cluster import SERVICES, KnativeCluster, knative_cluster
from support.kserve import render
from support.kube import Missing, Refused
from support.waiting import until

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof, pytest.mark.timeout(900)]

APP = """
import asyncio
import alipes

@alipes.model
async def patient(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"
"""
CURVE = ServiceCurve((1, 2, 4, 8), (52, 95, 131, 136), (21, 24, 36, 71))
"""4 at a time, 1.92 on the mean, and three replicas for 250 requests per second."""
PREFIX = "autoscaling.knative.dev/"
DONE = (200, b'"done"')
SHORT_S, LONG_S = 0.3, 45.0
"""The queue-proxy ends the server half a minute after the last request came: a longer one is left to our drain."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnativeCluster]:
    folder = tmp_path_factory.mktemp("knative")
    (folder / "source").mkdir()
    (folder / "source" / "app.py").write_text(APP, encoding="utf-8")
    with ExitStack() as stack:
        try:
            found = stack.enter_context(knative_cluster(folder, folder / "source" / "app.py"))
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield found


class Service:
    """What KServe makes of our description with sizes, in a namespace of the test; its model is the image's app."""

    def __init__(self, cluster: KnativeCluster, lowest_rate: float = 0) -> None:
        self.cluster = cluster
        self.namespace = f"test-{secrets.token_hex(4)}"
        cluster.plane.namespace(self.namespace)
        values = {
            "name": "patient",
            "mode": "Knative",
            "image": cluster.image,
            "probes": {"periodS": 1},
            "predictor": {
                "format": "onnx",
                "storage": {"uri": "gs://bucket/patient"},
                "timeoutS": 120,
                "resources": {"cpu": "100m", "memory": "512Mi"},
            },
        }
        wanted = described(values, sizing=size(CURVE, rates=(lowest_rate, 250)))
        (answer,) = render(kserve_objects(wanted))
        assert answer.refusals == []
        (made,) = [each for each in answer.objects if each["apiVersion"] == "serving.knative.dev/v1"]
        template = made["spec"]["template"]
        (server,) = template["spec"]["containers"]
        # Knative brings no model into a pod: KServe does, by a webhook of pods.
        server["args"] = ["/app/app.py", *(word for word in server["args"] if not word.startswith("--model-"))]
        self.document = {
            "apiVersion": made["apiVersion"],
            "kind": made["kind"],
            "metadata": {"name": "patient"},
            "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
        }

    @property
    def revision(self) -> str:
        return "patient-00001"

    def send(self) -> None:
        self.cluster.plane.request("POST", SERVICES.format(namespace=self.namespace), self.document)

    def start(self) -> Self:
        """Sends it, and returns once it has served."""
        self.send()
        until(self.is_ready, "the service is ready")
        return self

    def is_ready(self) -> bool:
        found = self.read("serving.knative.dev/v1", "services", "patient")
        conditions = found.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def remove(self) -> None:
        self.cluster.plane.request("DELETE", f"{SERVICES.format(namespace=self.namespace)}/patient")

    def read(self, group: str, plural: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.plane.request(
            "GET", f"/apis/{group}/namespaces/{self.namespace}/{plural}/{name}"
        )
        return found

    def pods(self) -> list[dict[str, Any]]:
        """Those that are there, also on their way out."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        listed: list[dict[str, Any]] = self.cluster.plane.request("GET", path)["items"]
        return listed

    def serving(self) -> list[str]:
        """The names of pods that are ready and are to stay."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods()
            if "deletionTimestamp" not in pod["metadata"]
            and any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
        ]

    def until_at(self, count: int) -> None:
        """Returns once so many pods serve, and no other is to stay."""

        def is_so() -> bool:
            staying = [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]
            return len(staying) == len(self.serving()) == count

        until(is_so, f"{count} servers")

    def ask(self, seconds: float) -> tuple[int, bytes]:
        return self.cluster.post(self.namespace, self.revision, "/patient", {"seconds": seconds})


class Callers:
    """Callers, each with one request after the other until the block ends."""

    def __init__(self, service: Service, count: int) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self._service = service
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _call(self) -> None:
        while not self._over.is_set():
            self.answers.append(answer_of(self._service, SHORT_S))


def answer_of(service: Service, seconds: float) -> tuple[int, bytes]:
    """The answer to a request, or what became of it."""
    try:
        return service.ask(seconds)
    except OSError as error:
        return 0, repr(error).encode()


def all_at_once(service: Service, count: int) -> list[tuple[int, bytes]]:
    """The answers to requests that begin at the same time."""
    answers: list[tuple[int, bytes]] = []
    start = threading.Barrier(count)

    def call() -> None:
        start.wait()
        answers.append(answer_of(service, SHORT_S))

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def in_flight(service: Service) -> float:
    """Requests in the server of the only pod of a service."""
    (pod,) = service.pods()
    found = samples_at(f"{pod['status']['podIP']}:{METRICS_PORT}")
    return sum(value for name, value in found.items() if name.startswith("alipes_inference_concurrency{"))


def test_knative_takes_our_sizes_and_what_kserve_makes_of_them(cluster: KnativeCluster) -> None:
    service = Service(cluster, lowest_rate=50).start()
    service.until_at(1)
    revision = service.read("serving.knative.dev/v1", "revisions", service.revision)
    assert revision["spec"]["containerConcurrency"] == 4
    scaler = service.read("autoscaling.internal.knative.dev/v1alpha1", "podautoscalers", service.revision)
    assert scaler["spec"]["containerConcurrency"] == 4
    annotations = scaler["metadata"]["annotations"]
    assert {name: annotations[PREFIX + name] for name in ("min-scale", "max-scale", "target", "metric")} == {
        "min-scale": "1",
        "max-scale": "3",
        "target": "4",
        "metric": "concurrency",
    }
    assert annotations[f"{PREFIX}target-utilization-percentage"] == "48"
    (pod,) = service.pods()
    (queue,) = [one for one in pod["spec"]["containers"] if one["name"] == "queue-proxy"]
    assert {"name": "CONTAINER_CONCURRENCY", "value": "4"} in queue["env"]
    assert service.ask(0) == DONE
    service.remove()


@pytest.mark.parametrize(
    ("concurrency", "annotations", "words"),
    [
        (1001, {}, "expected 0 <= 1001 <= 1000: spec.template.spec.containerConcurrency"),
        (4, {"min-scale": "4"}, "max-scale=3 is less than min-scale=4"),
        (4, {"target-utilization-percentage": "101"}, "expected 1 <= 101 <= 100"),
        (4, {"target": "0"}, "target 0 should be at least 0.01"),
    ],
)
def test_knative_refuses_sizes_that_we_do_not_write(
    cluster: KnativeCluster, concurrency: int, annotations: dict[str, str], words: str
) -> None:
    service = Service(cluster)
    template = service.document["spec"]["template"]
    template["spec"]["containerConcurrency"] = concurrency
    template["metadata"]["annotations"] |= {PREFIX + name: value for name, value in annotations.items()}
    with pytest.raises(Refused) as refused:
        service.send()
    assert words in json.loads(refused.value.content)["message"]


def test_requests_that_find_no_server_wait_for_one(cluster: KnativeCluster) -> None:
    service = Service(cluster).start()
    until(lambda: not service.pods(), "the server is gone")
    assert service.ask(0) == DONE
    assert len(service.serving()) == 1
    until(lambda: not service.pods(), "the server is gone")
    assert all_at_once(service, 30) == [DONE] * 30
    service.remove()


def test_scaling_down_costs_no_request(cluster: KnativeCluster) -> None:
    service = Service(cluster).start()
    with Callers(service, 1) as lasting:
        with Callers(service, 12) as more:
            service.until_at(3)
        # The others leave while requests of this caller go on; two servers end meanwhile.
        service.until_at(1)
        until(lambda: len(service.pods()) == 1, "pods that end have ended")
    assert set(lasting.answers) == set(more.answers) == {DONE}
    service.remove()


def test_a_server_that_ends_answers_what_it_has_begun(cluster: KnativeCluster) -> None:
    service = Service(cluster, lowest_rate=50).start()
    service.until_at(1)
    (before,) = service.serving()
    found: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: found.append(answer_of(service, LONG_S)))
    asking.start()
    until(lambda: in_flight(service) == 1, "the request is in the server")
    cluster.plane.request("DELETE", f"/api/v1/namespaces/{service.namespace}/pods/{before}")
    until(lambda: service.serving() not in ([], [before]), "another server serves")
    assert service.ask(0) == DONE
    asking.join()
    assert found == [DONE]
    until(lambda: before not in {pod["metadata"]["name"] for pod in service.pods()}, "the server has ended")
    service.remove()

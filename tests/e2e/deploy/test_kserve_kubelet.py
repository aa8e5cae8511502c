"""`alipes deploy kserve` on a real KServe with a real kubelet: our image, models that KServe's initializer fetches."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import numpy as np
import pytest
from alipes.client import Client, Retry
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from alipes.errors import AlipesError
from support.command import Done, alipes
from support.hosts_file import HostsFile, addresses
from support.kserve_cluster import KServeCluster, kserve_cluster
from support.kube import Missing
from support.models import fails_above, times
from support.servers_caller import ServersCaller
from support.waiting import TIMEOUT_S, until

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof, pytest.mark.timeout(900)]

NAME = "times"
STABLE = f"{NAME}-predictor"
CANARY = f"{NAME}-next-predictor"
HTTP, GRPC = 8080, 9000
ROWS = np.array([[1, 2]], np.float32)
EQUAL, FAILING = "equal", "failing"
"""Models like that of the factor 2: KServe promotes no canary whose address is the predictor's."""
ROLLOUT = ("--steps=20,50", "--step-time=5", "--last-step-time=180", "--look-every=0.5")
WIDE = ("--max-errors=5%", "--max-latency=2000%", "--max-drift=0.4")
"""Pods share two processors with everything else here."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KServeCluster]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(kserve_cluster(tmp_path_factory.mktemp("kserve")))
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        for factor in (2, 3, 4):
            found.store.files[f"/{factor}/model.onnx"] = times(factor).SerializeToString()
        found.store.files[f"/{EQUAL}/model.onnx"] = times(2).SerializeToString()
        found.store.files[f"/{FAILING}/model.onnx"] = fails_above(2.0).SerializeToString()
        yield found


class Service:
    """The InferenceService `times` in a namespace of the test."""

    def __init__(self, cluster: KServeCluster) -> None:
        self.cluster = cluster
        self.namespace = f"test-{secrets.token_hex(4)}"
        cluster.plane.namespace(self.namespace)

    def uri(self, factor: int | str) -> dict[str, str]:
        return {"uri": f"{self.cluster.store.address}/{factor}/model.onnx"}

    def objects(self, factor: int, *canaries: dict[str, Any], name: str = "", servers: int = 2) -> list[dict[str, Any]]:
        predictor = {
            "format": "onnx",
            "storage": self.uri(factor),
            "name": name,
            "scaling": {"kind": "none", "least": servers},
            "resources": {"cpu": "100m", "memory": "512Mi"},
        }
        values = {"name": NAME, "image": self.cluster.image, "predictor": predictor, "canaries": canaries}
        return kserve_objects(described(values | {"probes": {"periodS": 1}, "runtimes": {"formats": ["onnx"]}}))

    def apply(self, objects: list[dict[str, Any]]) -> Done:
        return self.run("apply", "-", "--timeout=240", text=yaml_of(objects))

    def run(self, *words: str, text: str = "") -> Done:
        kubeconfig = self.cluster.plane.kubeconfig(namespace=self.namespace)
        done = alipes("deploy", *words, f"--kubeconfig={kubeconfig}", text=text)
        assert done.code == 0, done.err
        return done

    def pods(self) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        listed: list[dict[str, Any]] = self.cluster.plane.request("GET", path)["items"]
        return listed

    def addresses(self, service: str = STABLE) -> list[str]:
        """Of the servers that a Service of KServe sends requests to."""
        return addresses(self.cluster.plane, self.namespace, service)

    def answers(self, service: str = STABLE) -> list[float | None]:
        """What its servers make of 1, each over gRPC."""
        return [over_grpc(address) for address in self.addresses(service)]

    def until_answered(self, *factors: float, service: str = STABLE) -> None:
        """Returns once there are so many servers with these models, and none besides."""

        def is_so() -> bool:
            pods = [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]
            return len(self.addresses(service)) == len(factors) and len(pods) >= len(factors)

        until(is_so, f"{len(factors)} servers of {service}")
        until(lambda: self.answers(service) == list(factors), f"{service} answers {factors}")


def over_grpc(address: str) -> float | None:
    """What a server makes of 1; nothing where it does not serve any more."""
    with Client(f"grpc://{address}:{GRPC}") as client:
        try:
            return float(client.infer(NAME, ROWS)[0, 0])
        except AlipesError:
            return None


class Requests:
    """Requests with random rows to the servers of the predictor and of the canary, half each, while it is entered.

    There is no gateway here that would divide them.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(name,)) for name in (STABLE, CANARY)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _call(self, service: str) -> None:
        random = np.random.default_rng(len(service))
        while not self._over.is_set():
            for address in self._service.addresses(service) or [""]:
                if address:
                    self._ask(address, random)
                self._over.wait(0.01)

    def _ask(self, address: str, random: np.random.Generator) -> None:
        with Client(f"grpc://{address}:{GRPC}", retry=Retry(times=0)) as client, suppress(AlipesError):
            for _ in range(20):
                client.infer(NAME, random.normal(1, 1, (1, 2)).astype(np.float32))


@pytest.fixture
def service(cluster: KServeCluster) -> Iterator[Service]:
    found = Service(cluster)
    yield found
    if found.pods():
        found.run("remove", NAME, "--timeout=120")
    until(lambda: not found.pods(), "pods are left")


def test_a_service_answers_v1_v2_and_grpc(service: Service) -> None:
    done = service.apply(service.objects(2))
    assert f"{NAME}: ready, Standard" in done.out
    service.until_answered(2, 2)
    for address in service.addresses():
        body = json.dumps({"instances": [[1, 2]]}).encode()
        request = Request(f"http://{address}:{HTTP}/v1/models/{NAME}:predict", body)
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            assert json.loads(answer.read()) == {"predictions": [[2, 4]]}
        with Client(f"http://{address}:{HTTP}") as client:
            assert client.infer(NAME, ROWS).tolist() == [[2, 4]]


def test_a_server_has_a_root_that_is_read_only_and_any_user(service: Service) -> None:
    user = 1_000_770_000  # of the range that OpenShift has for a project
    objects = service.objects(2, servers=1)
    (runtime,) = [each for each in objects if each["kind"] == "ClusterServingRuntime"]
    (server,) = runtime["spec"]["containers"]
    server["securityContext"] |= {"runAsUser": user, "runAsGroup": 0}
    service.apply(objects)
    service.until_answered(2)
    (pod,) = service.pods()
    (status,) = pod["status"]["containerStatuses"]
    processes = service.cluster.machine.processes_of(status["containerID"])
    assert processes
    for process in processes:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        (users,) = [line.split()[1:] for line in lines if line.startswith("Uid:")]
        assert users == [str(user)] * 4
        (allowed,) = [line.split()[1] for line in lines if line.startswith("CapEff:")]
        assert int(allowed, 16) == 0
        mounts = [line.split() for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines()]
        options = {mount[4]: mount[5].split(",") for mount in mounts}
        assert "ro" in options["/"]
        assert "ro" in options["/mnt/models"]
        assert "rw" in options["/tmp"]


def test_updates_canaries_and_a_promotion_cost_no_call(service: Service, tmp_path: Path) -> None:
    service.apply(service.objects(2))
    service.until_answered(2, 2)
    canary = {"name": "next", "percent": 50, "storage": service.uri(4)}
    hosts = HostsFile(tmp_path / "hosts", service.cluster.plane, service.namespace, STABLE, CANARY)
    with hosts, ServersCaller([f"dns:///{STABLE}:{GRPC}"], tmp_path / "hosts", factors=(2, 3, 4)) as caller:
        service.apply(service.objects(3))
        service.until_answered(3, 3)
        caller.answers(more=40)

        service.apply(service.objects(3, canary))
        service.until_answered(4, service=CANARY)
        service.until_answered(3)
        service.run("kserve", "rollback", NAME, "--timeout=240")
        service.until_answered(3, 3)
        caller.answers(more=40)

        service.apply(service.objects(3, canary))
        service.until_answered(4, service=CANARY)
        done = service.run("kserve", "promote", NAME, "--timeout=240")
        assert ["next", "100", "%", "ready"] in done.rows
        service.until_answered(4, 4, service=CANARY)
        assert not service.addresses()
        caller.answers(more=40)


def rollout_process(service: Service, *flags: str) -> subprocess.Popen[str]:
    kubeconfig = service.cluster.plane.kubeconfig(namespace=service.namespace)
    words = ("deploy", "kserve", "rollout", NAME, *ROLLOUT, *WIDE, f"--kubeconfig={kubeconfig}", *flags)
    return subprocess.Popen([sys.executable, "-m", "alipes", *words], stdout=subprocess.PIPE, text=True)


def with_canary(service: Service, model: str) -> None:
    """The service with two servers of the factor 2, and one of a canary."""
    service.apply(service.objects(2, servers=3))
    service.apply(service.objects(2, {"name": "next", "percent": 10, "storage": service.uri(model)}, servers=3))
    service.until_answered(2, service=CANARY)
    service.until_answered(2, 2)


def test_an_equal_canary_is_promoted_while_pods_go_and_start_again(service: Service, tmp_path: Path) -> None:
    with_canary(service, EQUAL)
    journal = tmp_path / "journal.jsonl"
    with Requests(service):
        process = rollout_process(service, f"--journal={journal}", "--step-time=60")
        until(lambda: journal.exists() and '"look"' in journal.read_text(), "the first look")
        groups = {pod["metadata"]["name"]: pod for pod in service.pods()}
        stable = next(name for name in groups if CANARY not in name)
        canary = next(name for name in groups if CANARY in name)
        path = f"/api/v1/namespaces/{service.namespace}/pods/{stable}"
        service.cluster.plane.request("DELETE", path)
        (status,) = groups[canary]["status"]["containerStatuses"]
        for number in service.cluster.machine.processes_of(status["containerID"]):
            os.kill(int(number), signal.SIGKILL)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out.splitlines()[-1]) == (
        0,
        f"the canary of {NAME} has all requests now: no comparison found the candidate worse",
    )
    service.until_answered(2, 2, 2, service=CANARY)
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["share"] for event in events if event["event"] == "step"] == [20, 50]
    counted = [event["requests"] for event in events if event["event"] == "look" and event["share"] == 50]
    assert all(before <= after for pair in zip(*counted, strict=True) for before, after in pairwise(pair))
    for address in service.addresses(CANARY):
        with Client(f"http://{address}:{HTTP}") as client:
            assert client.traffic(NAME).weights == {}


def test_a_failing_canary_is_rolled_back(service: Service) -> None:
    with_canary(service, FAILING)
    with Requests(service):
        process = rollout_process(service)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert out.splitlines()[-1].startswith(f"the canary of {NAME} is taken back: errors: worse by "), out
    service.until_answered(2, 2, 2)
    assert not service.addresses(CANARY)


def test_a_stopped_service_has_no_server_until_it_is_started(service: Service) -> None:
    service.apply(service.objects(2, servers=1))
    service.until_answered(2)
    assert f"{NAME}: stopped" in service.run("kserve", "stop", NAME, "--timeout=240").out
    until(lambda: not service.pods(), "pods are left")
    assert f"{NAME}: ready" in service.run("kserve", "start", NAME, "--timeout=240").out
    service.until_answered(2)
    service.run("remove", NAME, "--timeout=240")
    node = service.cluster.machine
    until(lambda: not node.containers(), "containers are left")
    until(lambda: not node.mounts(), "mounts are left")
    until(lambda: not node.networks(), "networks are left")


def test_a_model_that_the_store_lacks_ends_the_wait_with_the_reason(service: Service) -> None:
    kubeconfig = service.cluster.plane.kubeconfig(namespace=service.namespace)
    words = ("deploy", "apply", "-", "--timeout=240", f"--kubeconfig={kubeconfig}")
    done = alipes(*words, text=yaml_of(service.objects(9, servers=1)))
    assert done.code == 1
    uri = service.uri(9)["uri"]
    assert (
        f"the model cannot be served: Storage initialization failed: HTTP resource not found at '{uri}'" in done.message
    )

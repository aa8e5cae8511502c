"""Our image on a real kubelet, in pods with addresses of their own: served, killed, updated, scaled and removed."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import Client
from support.command import Done, alipes
from support.hosts_file import HostsFile, addresses
from support.kube import ControlPlane, Missing
from support.kubelet import Machine
from support.models import add_model, times
from support.real_node import push_image, real_node
from support.servers_caller import ServersCaller
from support.waiting import until

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof, pytest.mark.timeout(900)]

NAME = "models"
SERVERS = f"{NAME}-servers"
SMALL = ["--set=resources.cpu=100m", "--set=resources.memory=512Mi", "--set=probes.periodS=1"]
ROWS = np.array([[1, 2]], np.float32)


@dataclass(frozen=True)
class Place:
    """A cluster of one real node, and a registry with two tags of an image.

    Attributes:
        plane: Its control plane.
        machine: Its node.
        repository: The registry and the name, to which a tag belongs.
    """

    plane: ControlPlane
    machine: Machine
    repository: str

    def image(self, tag: str) -> str:
        return f"{self.repository}:{tag}"


@dataclass(frozen=True)
class Deployed:
    """What `alipes deploy` does in a namespace."""

    place: Place
    namespace: str

    def apply(self, image: str, *words: str, timeout_s: int = 240) -> Done:
        written = alipes("deploy", "kubernetes", f"--name={NAME}", f"--image={image}", *SMALL, *words)
        assert (written.code, written.err) == (0, "")
        return self.run("apply", "-", text=written.out, timeout_s=timeout_s)

    def run(self, verb: str, *words: str, text: str = "", timeout_s: int = 240) -> Done:
        kubeconfig = self.place.plane.kubeconfig(namespace=self.namespace)
        waits = [f"--timeout={timeout_s}"] if verb in {"apply", "scale", "rollback", "remove"} else []
        return alipes("deploy", verb, *words, *waits, f"--kubeconfig={kubeconfig}", text=text)

    def pods(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.place.plane.request("GET", self.path("pods"))["items"]
        return listed

    def path(self, what: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{what}"

    def addresses(self) -> list[str]:
        """Of the servers that are sent requests."""
        return addresses(self.place.plane, self.namespace, SERVERS)

    def until_served_by(self, count: int) -> None:
        """Returns once there are so many pods, and each is sent requests."""
        until(lambda: len(self.pods()) == len(self.addresses()) == count, f"{count} servers")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kubelet")
    with ExitStack() as stack:
        try:
            node = stack.enter_context(real_node(folder))
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        repository = f"{node.images}/models"
        push(folder, repository)
        yield Place(node.plane, node.machine, repository)


def push(folder: Path, repository: str) -> None:
    """Makes the image of a model and pushes it under two tags, with a label by which their contents differ."""
    (folder / "models").mkdir()
    add_model(folder / "models", "times", times())
    for tag in ("1", "2"):
        push_image(f"{repository}:{tag}", folder / "cache", str(folder / "models"), f"--label=tag={tag}")


@pytest.fixture
def empty(place: Place) -> Iterator[Deployed]:
    """A namespace without servers."""
    found = Deployed(place, f"test-{secrets.token_hex(4)}")
    place.plane.namespace(found.namespace)
    yield found
    if found.run("status", NAME).code != 1:  # it is there
        found.run("remove", NAME)
    until(lambda: not found.pods(), "pods are left")


@pytest.fixture
def deployed(empty: Deployed) -> Deployed:
    """Two servers."""
    done = empty.apply(empty.place.image("1"), "--replicas=2")
    assert (done.code, done.err) == (0, "")
    assert "2 of 2 servers, revision 1" in done.out
    empty.until_served_by(2)
    return empty


def grpc(found: list[str]) -> list[str]:
    return [f"{address}:8001" for address in found]


def test_two_servers_are_killed_and_cost_no_call(deployed: Deployed) -> None:
    found = deployed.addresses()
    for address in (*grpc(found), *(f"http://{one}:8000" for one in found)):
        with Client(address) as client:
            assert client.infer("times", ROWS).tolist() == [[2, 4]]
    for pod in deployed.pods():
        assert pod["status"]["containerStatuses"][0]["started"]  # the kubelet has asked
    lines = deployed.run("logs", NAME)
    assert all(f"{pod['metadata']['name']}: " in lines.out for pod in deployed.pods())

    with ServersCaller(grpc(found)) as caller:
        victim = deployed.pods()[0]
        container = victim["status"]["containerStatuses"][0]["containerID"]
        processes = deployed.place.machine.processes_of(container)
        assert processes
        os.kill(processes[0], signal.SIGKILL)
        until(lambda: restarts(deployed, victim) == 1, "the kubelet starts it again")
        deployed.until_served_by(2)
        assert deployed.addresses() == found
        caller.answers(more=40)

        name = victim["metadata"]["name"]
        deployed.place.plane.request("DELETE", deployed.path(f"pods/{name}"))
        until(lambda: name not in [pod["metadata"]["name"] for pod in deployed.pods()], "the pod is gone")
        deployed.until_served_by(2)
        caller.answers(more=40)
    (newcomer,) = set(deployed.addresses()) - set(found)
    with Client(f"{newcomer}:8001") as client:
        assert client.infer("times", ROWS).tolist() == [[2, 4]]


def restarts(deployed: Deployed, pod: dict[str, Any]) -> int:
    found = deployed.place.plane.request("GET", deployed.path(f"pods/{pod['metadata']['name']}"))
    return int(found["status"]["containerStatuses"][0]["restartCount"])


def test_an_update_and_scaling_cost_no_call_and_nothing_is_left(deployed: Deployed, tmp_path: Path) -> None:
    plane, node = deployed.place.plane, deployed.place.machine
    hosts = HostsFile(tmp_path / "hosts", plane, deployed.namespace, SERVERS)
    with hosts, ServersCaller([f"dns:///{SERVERS}:8001"], tmp_path / "hosts"):
        before = deployed.addresses()
        updated = deployed.apply(deployed.place.image("2"), "--replicas=2")
        assert updated.code == 0, updated.err
        assert f"2 of 2 servers, revision 2, {deployed.place.image('2')}" in updated.out
        deployed.until_served_by(2)
        assert not set(before) & set(deployed.addresses())

        for count in (1, 2):
            scaled = deployed.run("scale", NAME, str(count))
            assert scaled.code == 0, scaled.err
            deployed.until_served_by(count)

        back = deployed.run("rollback", NAME)
        assert back.code == 0, back.err
        assert f"revision 3, {deployed.place.image('1')}" in back.out
        deployed.until_served_by(2)

    gone = deployed.run("remove", NAME)
    assert (gone.code, gone.err) == (0, "")
    until(lambda: not deployed.pods(), "pods are left")
    until(lambda: not node.containers(), "containers are left")
    until(lambda: not node.mounts(), "mounts are left")
    until(lambda: not node.networks(), "networks are left")
    until(lambda: not [group for group in node.control_groups() if group.name.startswith("pod")], "groups are left")


def test_an_image_that_is_not_there_ends_the_wait_with_the_reason(empty: Deployed) -> None:
    image = empty.place.image("none")
    done = empty.apply(image)
    assert done.code == 1
    assert image in done.message
    assert "not found" in done.message


def test_a_server_with_too_little_memory_is_named_as_killed_for_it(empty: Deployed) -> None:
    done = empty.apply(empty.place.image("1"), "--set=resources.memory=32Mi")
    assert done.code == 1
    assert "container alipes was killed for its memory; its limit is 32Mi" in done.message
    (pod,) = empty.pods()
    (state,) = pod["status"]["containerStatuses"]
    ended = state["state"].get("terminated") or state["lastState"]["terminated"]
    assert ended["reason"] == "OOMKilled"
    status = empty.run("status", NAME)
    assert status.code == 3
    assert "its limit is 32Mi" in status.out


def test_a_server_that_does_not_answer_the_probe_is_not_ready(empty: Deployed) -> None:
    done = empty.apply(empty.place.image("1"), "--set=arguments=[--http-port=9000]", timeout_s=60)
    assert done.code == 1
    assert "Startup probe failed" in done.message
    assert "connection refused" in done.message
    assert empty.addresses() == []

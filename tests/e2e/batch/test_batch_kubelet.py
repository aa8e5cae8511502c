"""Clients of a run as pods that a real kubelet runs, with our image: one is killed, and no row differs."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alipes.batch.folder import RunFolder
from support import other_user
from support.batch_runs import BatchProcess, add_files, add_picky, await_held, holder_of, rows_of
from support.kube import Missing
from support.kubelet import ADDRESS
from support.real_node import RealNode, push_image, real_node
from support.server import ServerProcess
from support.shared_volume import CLAIM, shared_volume
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.extra("deploy"), pytest.mark.timeout(900)]

Serve = Callable[..., ServerProcess]
CLIENTS = 2
USERS = {"root": 0, "another": other_user.USER}
# A folder of the volume, as several laboratories have in one.
LAB = "lab"


@dataclass(frozen=True)
class Place:
    """A cluster of one real node, and our image in its registry."""

    node: RealNode
    image: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kubelet")
    with ExitStack() as stack:
        try:
            node = stack.enter_context(real_node(folder))
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield Place(node, push_image(f"{node.images}/alipes:1", folder / "cache"))


@dataclass(frozen=True)
class Laboratory:
    """A namespace whose pods share a folder with this machine, and a server that both reach.

    Attributes:
        place: The cluster.
        namespace: The namespace.
        folder: The folder, with files in `data`.
        server: The server.
        notes: Where its model leaves notes, and looks for some.
        expected: What a run makes of each row.
    """

    place: Place
    namespace: str
    folder: Path
    server: ServerProcess
    notes: Path
    expected: dict[tuple[str, int], list[float]]

    def words(self, out: Path, *more: object) -> list[object]:
        words = ["picky", self.folder / "data", "-o", out, "--url", self.server.grpc]
        return [*words, "--clients", CLIENTS, "--in-flight", 1, "--batch", 3, *more]

    def run(self, out: Path, user: int = 0, **changes: str) -> BatchProcess:
        """A run whose clients are pods, started by a user."""
        options = {
            "image": self.place.image,
            "claim": f"{CLAIM}/{LAB}",
            "path": str(self.folder),
            "kubeconfig": str(self.kubeconfig()),
            "resources.cpu": "100m",
            "resources.memory": "256Mi",
        }
        words = [f"--executor-option={name}={value}" for name, value in (options | changes).items()]
        launcher = other_user.launcher(self.folder) if user else ()
        return BatchProcess(*self.words(out, "--executor", "kubernetes", *words), launcher=launcher)

    def kubeconfig(self) -> Path:
        """A file that every user can read, with all that is in it."""
        document = json.loads(self.place.node.plane.kubeconfig(namespace=self.namespace).read_text())
        cluster = document["clusters"][0]["cluster"]
        authority = Path(cluster.pop("certificate-authority")).read_bytes()
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
        path = self.folder / "kubeconfig.json"
        path.write_text(json.dumps(document))
        return path

    def pods(self) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        listed: list[dict[str, Any]] = self.place.node.plane.request("GET", path)["items"]
        return listed

    def jobs(self) -> list[str]:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        return [one["metadata"]["name"] for one in self.place.node.plane.request("GET", path)["items"]]

    def processes(self, shard: int) -> list[int]:
        """The processes of the pod that does a shard."""
        containers = [
            one["containerID"]
            for pod in self.pods()
            if pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == str(shard)
            for one in pod["status"].get("containerStatuses", ())
            if "running" in one["state"]
        ]
        return [process for one in containers for process in self.place.node.machine.processes_of(one)]

    def until_nothing_is_left(self) -> None:
        until(lambda: not self.jobs() and not self.pods(), "pods are left")
        until(lambda: not self.place.node.machine.containers(), "containers are left")


@pytest.fixture
def laboratory(place: Place, serve: Serve, repository: Path, tmp_path: Path) -> Iterator[Laboratory]:
    add_picky(repository)
    notes = tmp_path / "notes"
    notes.mkdir()
    server = serve(repository, f"--grpc-address={ADDRESS}", environment={"NOTES": str(notes)})
    namespace = f"test-{secrets.token_hex(4)}"
    place.node.plane.namespace(namespace)
    volume = other_user.private_folder()
    folder = volume / LAB
    folder.mkdir()
    os.chown(folder, other_user.USER, other_user.USER)
    try:
        with shared_volume(place.node.plane, namespace, volume):
            yield Laboratory(place, namespace, folder, server, notes, add_files(folder / "data", 48))
    finally:
        shutil.rmtree(volume)


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_a_killed_pod_is_made_again_and_no_row_differs(laboratory: Laboratory, tmp_path: Path, user: int) -> None:
    if user and (reason := other_user.why_not()):
        pytest.skip(reason)
    out = laboratory.folder / "out"
    with laboratory.run(out, user) as run:
        await_held(laboratory.notes)
        holder = holder_of(out)
        until(lambda: laboratory.processes(holder.shard), "the kubelet does not say which container it is")
        process = laboratory.processes(holder.shard)[0]
        assert Path(f"/proc/{process}").stat().st_uid == user
        os.kill(process, signal.SIGKILL)
        # Kubernetes waits before it makes a pod again; the pieces stay until then.
        until(lambda: len(laboratory.pods()) > CLIENTS, "no pod is made again")
        (laboratory.notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    hosts = [client.host for client in RunFolder(out).workers()]
    assert len(hosts) == CLIENTS + 1
    assert {host.rpartition("-")[2] for host in hosts} == {"0", "1"}, "those of pods"
    laboratory.until_nothing_is_left()

    with BatchProcess(*laboratory.words(tmp_path / "quiet")) as quiet:
        assert quiet.wait().code == 0
    assert rows_of(out) == rows_of(tmp_path / "quiet") == laboratory.expected


def test_an_interrupted_run_leaves_no_container_and_goes_on(laboratory: Laboratory) -> None:
    out = laboratory.folder / "out"
    with laboratory.run(out) as run:
        await_held(laboratory.notes)
        run.process.send_signal(signal.SIGINT)
        (laboratory.notes / "go").touch()
        assert run.wait().code == 130
    laboratory.until_nothing_is_left()
    before = RunFolder(out).done()
    with laboratory.run(out) as run:
        assert run.wait().code == 0
    assert before <= RunFolder(out).done()
    assert rows_of(out) == laboratory.expected


def test_the_last_line_of_pods_that_cannot_begin_is_the_reason(laboratory: Laboratory) -> None:
    out = laboratory.folder / "out"
    with laboratory.run(out, environment="{PYTHONHOME: /nowhere}") as run:
        done = run.wait()
    assert done.code == 1
    assert "the job of Kubernetes failed: Job has failed indexes; the last line of a pod:" in done.message
    laboratory.until_nothing_is_left()


def test_an_image_that_no_registry_has_is_one_message(laboratory: Laboratory) -> None:
    image = f"{laboratory.place.node.images}/alipes:none"
    with laboratory.run(laboratory.folder / "out", image=image) as run:
        done = run.wait()
    assert done.code == 1
    assert f"image {image}" in done.message
    assert "not found" in done.message
    laboratory.until_nothing_is_left()

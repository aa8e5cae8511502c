"""Clients as pods of an Indexed Job, on a real API server with real controllers; the test plays the kubelet."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.acted_kubelet import acted_kubelet
from support.batch_runs import BatchProcess, add_files, add_picky, await_held, clients_of, rows_of
from support.kube import ControlPlane, Node
from support.server import ServerProcess
from support.shared_volume import CLAIM, shared_volume
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.extra("deploy")]

Serve = Callable[..., ServerProcess]


@pytest.fixture
def node(kubernetes: ControlPlane, namespace: str) -> Iterator[str]:
    """A node whose pods the test runs; its label."""
    kubernetes.add(Node(f"node-{namespace}", labels={"test": namespace}, is_acted=True))
    yield f"nodeSelector.test={namespace}"
    kubernetes.request("DELETE", f"/api/v1/nodes/node-{namespace}")


@pytest.fixture
def claim(kubernetes: ControlPlane, namespace: str) -> Iterator[str]:
    """A claim that is bound to a volume, which the pods that the test plays do without."""
    with shared_volume(kubernetes, namespace, Path("/nowhere")):
        yield f"claim={CLAIM}"


@pytest.fixture
def options(kubernetes: ControlPlane, namespace: str, node: str, claim: str, tmp_path: Path) -> list[str]:
    """What the executor needs to know."""
    kubeconfig = f"kubeconfig={kubernetes.kubeconfig(namespace=namespace)}"
    return ["image=example.test/alipes:1", claim, f"path={tmp_path}", kubeconfig, node]


def jobs(kubernetes: ControlPlane, namespace: str) -> list[str]:
    items = kubernetes.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
    return [one["metadata"]["name"] for one in items]


def words_of(tmp_path: Path, url: str, *options: str) -> list[object]:
    words = ["picky", tmp_path / "data", "-o", tmp_path / "out", "--url", url, "--clients", 2, "--in-flight", 1]
    words += ["--batch", 3, "--executor", "kubernetes"]
    return [*words, *(word for option in options for word in ("--executor-option", option))]


def test_a_client_of_kubernetes_that_is_killed_is_made_again(
    kubernetes: ControlPlane, namespace: str, options: list[str], serve: Serve, repository: Path, tmp_path: Path
) -> None:
    add_picky(repository)
    expected = add_files(tmp_path / "data", 48)
    notes = tmp_path / "notes"
    notes.mkdir()
    server = serve(repository, environment={"NOTES": str(notes)})
    words = words_of(tmp_path, server.grpc, *options)
    with acted_kubelet(kubernetes, namespace, {}) as kubelet, BatchProcess(*words) as run:
        await_held(notes)
        for client in clients_of(tmp_path / "out"):
            if client.state == "runs":
                os.kill(client.pid, signal.SIGKILL)
        # Kubernetes waits before it makes a pod again; the pieces stay until then.
        until(lambda: len(kubelet.seen) > 2)
        (notes / "go").touch()
        done = run.wait()
    assert (done.code, done.err) == (0, "")
    assert rows_of(tmp_path / "out") == expected
    assert jobs(kubernetes, namespace) == []


def test_an_interrupted_run_leaves_no_job(
    kubernetes: ControlPlane, namespace: str, options: list[str], serve: Serve, repository: Path, tmp_path: Path
) -> None:
    add_picky(repository)
    expected = add_files(tmp_path / "data", 48)
    notes = tmp_path / "notes"
    notes.mkdir()
    server = serve(repository, environment={"NOTES": str(notes)})
    words = words_of(tmp_path, server.grpc, *options)
    with acted_kubelet(kubernetes, namespace, {}), BatchProcess(*words) as run:
        await_held(notes)
        run.process.send_signal(signal.SIGINT)
        (notes / "go").touch()
        assert run.wait().code == 130
    assert jobs(kubernetes, namespace) == []
    with acted_kubelet(kubernetes, namespace, {}), BatchProcess(*words) as run:
        assert run.wait().code == 0
    assert rows_of(tmp_path / "out") == expected


def test_a_wrong_option_of_kubernetes_is_one_message(
    kubernetes: ControlPlane, namespace: str, serve: Serve, repository: Path, tmp_path: Path
) -> None:
    add_picky(repository)
    add_files(tmp_path / "data", 2)
    server = serve(repository)
    right = {"image": "a:1", "claim": CLAIM, "path": str(tmp_path), "kubeconfig": str(kubernetes.kubeconfig())}
    for change, reason in (
        ({"image": ""}, "executor 'kubernetes' needs image="),
        ({"path": "/elsewhere"}, "pods find /elsewhere alone"),
        ({"resources.memory": "much"}, "resources.memory"),
        ({"kubeconfig": str(tmp_path / "none")}, "no cluster to talk to"),
        ({"namespace": "none"}, 'namespaces "none" not found'),
        ({"namespace": namespace}, f'persistentvolumeclaim "{CLAIM}" not found'),
    ):
        wrong = [f"{name}={value}" for name, value in (right | change).items()]
        with BatchProcess(*words_of(tmp_path, server.grpc, *wrong)) as run:
            done = run.wait()
        assert done.code == 1
        assert reason in done.message, done.err

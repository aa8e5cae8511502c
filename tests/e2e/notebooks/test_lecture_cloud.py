"""The cells of a lecture that make a cluster, deploy a server there, ask it, and have two of it.

The cells are as they stand, with their imports. Google's API is a simulator's; Kubernetes is a real one, whose nodes
have no machines. So the server that the cells ask runs here, at the address that the load balancer gets.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cells import Cell, read_cells
from support.hermes_names import hermes
from support.kube import ADMIN, ControlPlane, Node, Refused
from support.lecture_space import CELLS, bucket, check_answers, space
from support.server import ServerProcess

gke = pytest.importorskip("support.gke", reason="needs google-cloud-container")
pytest.importorskip("IPython", reason="the lecture is a notebook")

__all__ = ["bucket", "hermes", "space"]  # fixtures are found where they are imported

pytestmark = [
    pytest.mark.extra("google"),
    pytest.mark.filterwarnings("ignore"),
]  # the clients of buckets warn of each other

HERE = Path(__file__).parent
CLOUD = {cell.number: cell for cell in read_cells(HERE / "lecture_cloud.txt")}
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/tritonserver"
SERVICE = "/api/v1/namespaces/default/services/tritonserver"
DRIVERS = "/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-driver-installer"


@pytest.fixture
def address() -> str:
    """An address of this machine, on which nobody listens: port 8001 is in the cells."""
    return f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}.{secrets.randbelow(250) + 2}"


@pytest.fixture
def simulator(kubernetes: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Google Cloud, as the cells find it."""
    names: list[str] = []

    def nodes_came(pool: Any) -> None:
        for number in range(pool.initial_node_count):
            (accelerator,) = pool.config.accelerators
            names.append(f"{pool.name}-{number}")
            labels = {"cloud.google.com/gke-accelerator": accelerator.accelerator_type}
            kubernetes.add(Node(names[-1], gpus=accelerator.accelerator_count, labels=labels))

    endpoint = kubernetes.url.removeprefix("https://")
    simulator = gke.Simulator(endpoint, kubernetes.authority.read_bytes(), kubernetes.tokens[ADMIN], nodes_came)
    with gke.served(simulator) as session:
        opened = session(gke.Credentials(simulator))
        monkeypatch.setattr("alipes.cloud.google.manager.open_session", lambda *_: opened)
        yield simulator
    for path in (DEPLOYMENT, SERVICE, DRIVERS, *(f"/api/v1/nodes/{name}" for name in names)):
        try:
            kubernetes.request("DELETE", path)
        except Refused as error:  # the test had not come so far
            assert error.status == 404


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("bucket")
def test_every_cell_from_the_cluster_to_two_servers_works(
    space: dict[str, Any],
    kubernetes: ControlPlane,
    simulator: Any,
    address: str,
    serve: Callable[..., ServerProcess],
) -> None:
    (Path.cwd() / "triton.yaml").write_text((HERE / "triton.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    for number in (13, 14, 19):
        CELLS[number].run(space)

    for number in (20, 120, 21):
        CLOUD[number].run(space)
    assert [cluster.message.status.name for cluster in simulator.clusters.values()] == ["RUNNING"]
    shown: Any = CLOUD[3].run(space)
    assert "{{ .Values.bucket }}" in shown.data
    assert CLOUD[22].run(space).ready == 1
    pod = kubernetes.request("GET", DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]
    assert pod["image"].endswith("tritonserver:20.11-py3")
    assert pod["resources"]["limits"] == {"nvidia.com/gpu": "4", "cpu": "15"}

    serve("gs://ligo-quiver-demo", "--model-control-mode=explicit", f"--grpc-address={address}", "--grpc-port=8001")
    kubernetes.patch_status(SERVICE, {"loadBalancer": {"ingress": [{"ip": address}]}})
    try:
        for number in (23, 24):
            CELLS[number].run(space)
        assert space["ip"] == address
        Cell(0, 'do_some_iaas_inference("my-model")').run(space)
        for number in (25, 27, 29):
            CELLS[number].run(space)
        assert CLOUD[40].run(space).ready == 2
        CLOUD[43].run(space)
        check_answers(space)
    finally:
        if "client" in space:
            space["client"].close()
    nodes = {pod.node for pod in space["cluster"].k8s_client.status("tritonserver").pods}
    assert nodes == {"tritonserver-t4-pool-0", "tritonserver-t4-pool-1"}


@pytest.mark.proof
@pytest.mark.usefixtures("bucket", "simulator")
def test_the_whole_of_it_in_one_cell_works(space: dict[str, Any]) -> None:
    (Path.cwd() / "triton.yaml").write_text((HERE / "triton.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    assert CLOUD[100].run(space).ready == 1
    space["manager"].delete_resource(space["cluster"])
    assert space["manager"].removal_commands() == []

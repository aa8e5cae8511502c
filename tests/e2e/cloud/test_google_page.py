"""The page about Google Cloud works as printed, at the simulator of Google's API and a real Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks
from support.checkout import ROOT
from support.kube import ADMIN, ControlPlane, Node

pytestmark = pytest.mark.extra("google")

# Of `google.cloud` other packages may have installed a part.
pytest.importorskip("google.cloud.container_v1", reason="needs google-cloud-container")
gke = pytest.importorskip("support.gke", reason="needs google-cloud-container")

PAGE = (ROOT / "docs" / "how-to" / "google-cloud.md").read_text(encoding="utf-8")
MINE = " by e2e/cloud/test_google_page.py"


@pytest.fixture
def simulator(kubernetes: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Google Cloud, as scripts find it that name no connection."""
    names: list[str] = []

    def nodes_came(pool: Any) -> None:
        for _ in range(pool.initial_node_count):
            names.append(f"page-{len(names)}")
            kubernetes.add(Node(names[-1]))

    endpoint = kubernetes.url.removeprefix("https://")
    simulator = gke.Simulator(endpoint, kubernetes.authority.read_bytes(), kubernetes.tokens[ADMIN], nodes_came)
    with gke.served(simulator) as session:
        opened = session(gke.Credentials(simulator))
        monkeypatch.setattr("alipes.cloud.google.manager.open_session", lambda *_: opened)
        yield simulator
    for name in names:
        kubernetes.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.mark.proof
def test_every_block_of_the_page_works_as_printed(
    simulator: Any,
    kubernetes: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = [block for block in blocks(PAGE) if f" {block.argument}".endswith(MINE)]
    space: dict[str, Any] = {}
    service = "/api/v1/namespaces/default/services/server"
    for block in mine:
        if file := block.argument.removesuffix(MINE.lstrip()).strip():
            (tmp_path / file).write_text(block.text, encoding="utf-8")
            continue
        code = block.text
        if "wait_for_service" in code:
            # What a load balancer does: it is not there when the service is made.
            first, last = code.split("address = ")
            exec(first, space)
            kubernetes.patch_status(service, {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}})
            code = f"address = {last}"
        exec(code, space)
    assert len(mine) > 6
    assert space["address"] == "192.0.2.9"
    printed = capsys.readouterr().out
    (shown,) = [block.text for block in blocks(PAGE) if block.language == "text" and "in all" in block.text]
    assert [line.strip() for line in printed.splitlines()[:3]] == shown.splitlines()
    assert "2 ['" in printed
    assert simulator.clusters == {}
    assert space["manager"].removal_commands() == []
    kubernetes.request("DELETE", service)
    kubernetes.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/server")
    kubernetes.request("DELETE", "/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-driver-installer")

"""The chart installed, upgraded, rolled back and removed by Helm's own engine, on a real Kubernetes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alipes.cloud.kubernetes import Cluster
from support.command import alipes
from support.kube import ControlPlane

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof]

IMAGE = "registry.example.org/models:1"
TIMEOUT_S = 200


def images(cluster: Cluster) -> tuple[str, ...]:
    return cluster.wait_for_deployment("models", timeout_s=TIMEOUT_S).images


def test_helm_installs_upgrades_rolls_back_and_removes(
    kubernetes: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    words = ["--name=models", f"--image={IMAGE}", "--replicas=2", "--set=nodeSelector.type=kwok"]
    assert alipes("deploy", "helm", *words, f"--output={chart}").code == 0
    kubeconfig = kubernetes.kubeconfig(namespace=namespace)
    helm: Any = import_module("helm_python.config").Config(kubeconfig_path=kubeconfig, namespace=namespace)
    cluster = Cluster(kubeconfig)

    with helm:
        helm.install(chart, "models", wait="watcher", timeout=TIMEOUT_S, namespace=namespace)
        assert images(cluster) == (IMAGE,)
        assert cluster.status("models").ready == 2

        helm.upgrade(chart, "models", {"image": f"{IMAGE}1", "replicas": 3}, wait="watcher", timeout=TIMEOUT_S)
        assert images(cluster) == (f"{IMAGE}1",)
        assert cluster.status("models").ready == 3

        helm.rollback("models", wait="watcher", timeout=TIMEOUT_S)
        assert images(cluster) == (IMAGE,)
        assert cluster.status("models").ready == 2

        with pytest.raises(import_module("helm_python.errors").HelmError, match="gpus"):
            helm.upgrade(chart, "models", {"resources": {"gpus": "many"}})
        assert images(cluster) == (IMAGE,)

        helm.uninstall("models", wait="watcher", timeout=TIMEOUT_S)
    for path in ("api/v1/namespaces/{}/services", "apis/apps/v1/namespaces/{}/deployments"):
        assert kubernetes.request("GET", f"/{path.format(namespace)}")["items"] == []

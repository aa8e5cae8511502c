"""The page about Kubernetes from Python works as printed, on a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks
from support.checkout import ROOT
from support.kube import ControlPlane

pytestmark = pytest.mark.extra("deploy")

PAGE = (ROOT / "docs" / "how-to" / "kubernetes-from-python.md").read_text(encoding="utf-8")
MINE = "by e2e/cloud/test_kubernetes_page.py"


@pytest.mark.proof
def test_every_block_of_the_page_works_as_printed(
    kubernetes: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The official client reads this variable when it is imported, which other tests have done: the file by itself.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubernetes.kubeconfig()))
    mine = [block for block in blocks(PAGE) if block.argument.endswith(MINE)]
    assert len(mine) == 5
    space: dict[str, Any] = {}
    for block in mine:
        if file := block.argument.removesuffix(MINE).strip():
            (tmp_path / file).write_text(block.text, encoding="utf-8")
        else:
            exec(block.text, space)
    printed = capsys.readouterr().out
    (shown,) = [block.text for block in blocks(PAGE) if block.language == "text"]
    assert printed.startswith(f"{shown}2 of 2\nback to revision 1\nserver-")
    assert space["address"].startswith("10.0.0.")
    assert space["cluster"].made == []

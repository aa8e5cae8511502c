"""`alipes perf_analyzer` measures the real TorchServe."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from support.command import alipes
from support.switched import Document, environment_of, start_torchserve, written_by

pytestmark = [pytest.mark.extra("torch"), pytest.mark.proof, pytest.mark.timeout(900)]

ROW = np.linspace(-1, 1, 64).tolist()


@pytest.mark.filterwarnings("ignore:`torch.jit.load` is deprecated:DeprecationWarning")
def test_torchserve_is_measured_with_files(tmp_path: Path) -> None:
    environment = environment_of("torch")
    if environment is None or shutil.which("java") is None:
        pytest.skip("TorchServe or Java are not there: `make clients` brings the former")
    torch = pytest.importorskip("torch")
    file = written_by("mlp", Path(sys.executable)) / "mlp" / "1" / "model.pt"
    expected = torch.jit.load(file)(torch.tensor([ROW])).ravel().tolist()
    (tmp_path / "row.json").write_text(json.dumps({"x": ROW}))
    (tmp_path / "broken.json").write_text(json.dumps({"x": ROW[:3]}))
    theirs = start_torchserve(environment, file, Document("first", "/predictions/mlp", {"x": ROW}, tuple(expected)))
    with theirs.process:
        for name, status in (("row", 0), ("broken", 99)):
            document = {"data": [{"TORCHSERVE_INPUT": [str(tmp_path / f"{name}.json")]}]}
            (tmp_path / "data.json").write_text(json.dumps(document))
            words = ("--service-kind", "torchserve", "-m", "mlp", "-u", f"127.0.0.1:{theirs.http_port}")
            data = ("--input-data", str(tmp_path / "data.json"))
            done = alipes("perf_analyzer", *words, *data, "--request-count", "40", "--concurrency-range", "4")
            assert done.code == status, done.err
            assert ("    Request count: 40\n" in done.out) is (status == 0)

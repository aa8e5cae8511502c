"""The network on the page "From TorchServe" gives the same numbers there, on LitServe, on Mosec and here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.server import ServerProcess
from support.switched import Document, Program, environment_of, post, start, start_torchserve, written_by

pytestmark = [pytest.mark.extra("torch"), pytest.mark.proof, pytest.mark.timeout(900)]

ROWS = [np.linspace(low, 1, 64).tolist() for low in (-2, -1, 0)]
ENVIRONMENT = "torch"


def _expected(ours: str) -> list[list[float]]:
    """Our answers, over the protocol that has many rows in a request."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(ROWS), 64], "data": np.ravel(ROWS).tolist()}
    status, answer = post(ours, "/v2/models/mlp/infer", {"inputs": [tensor]})
    assert status == 200
    return np.reshape(answer["outputs"][0]["data"], (len(ROWS), 1)).tolist()


@pytest.mark.parametrize("peer", ["torchserve", "litserve", "mosec"])
def test_the_same_file_answers_the_same(peer: str, serve: Callable[..., ServerProcess]) -> None:
    environment = environment_of(ENVIRONMENT)
    if environment is None or (peer == "torchserve" and shutil.which("java") is None):
        pytest.skip("PyTorch's peers or Java are not there: `make clients` brings the former")
    models = written_by("mlp", Path(sys.executable))
    file = models / "mlp" / "1" / "model.pt"
    ours = serve(models).http
    expected = _expected(ours)
    path = "/predictions/mlp" if peer == "torchserve" else "/mlp"
    first = Document(f"{peer}_first", path, {"x": ROWS[0]}, tuple(expected[0]))
    if peer == "torchserve":
        theirs = start_torchserve(environment, file, first)
    else:
        theirs = start(Program(peer, "mlp", ENVIRONMENT, {"MODEL_PATH": str(file)}), first)
    with theirs.process:
        address = f"127.0.0.1:{theirs.http_port}"
        found: list[tuple[int, Any]] = [post(address, path, {"x": row}) for row in ROWS]
        # What the page says of a row that does not fit.
        statuses = post(ours, "/v2/models/mlp/generate", {"x": [1.0]})[0], post(address, path, {"x": [1.0]})[0]
    assert [status for status, _ in found] == [200] * len(ROWS)
    np.testing.assert_allclose([answer for _, answer in found], expected, rtol=1e-5)
    assert statuses == (400, {"torchserve": 503, "litserve": 500, "mosec": 500}[peer])

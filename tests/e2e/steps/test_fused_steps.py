"""Native steps of numbers go through an ensemble in one batch with the networks beside them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as grpc_client
from support.models import add_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "numbers" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "shares" data_type: TYPE_FP32 dims: [ 2 ] }
ensemble_scheduling { step [
  { model_name: "double" model_version: -1
    input_map { key: "X" value: "numbers" } output_map { key: "Y" value: "scores" } },
  { model_name: "share" model_version: -1
    input_map { key: "scores" value: "scores" } output_map { key: "probabilities" value: "shares" } }
] }
"""

SHARE = 'backend: "softmax" max_batch_size: 8 input { name: "scores" data_type: TYPE_FP32 dims: [ 2 ] }'


def explained(server: ServerProcess, model: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/explain", timeout=60) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def test_a_softmax_is_fused_with_the_network_before_it(serve: Serve, tmp_path: Path) -> None:
    add_model(tmp_path, "double", config="max_batch_size: 8 dynamic_batching { }")
    for name, config in (("share", SHARE), ("both", ENSEMBLE)):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(config)
    server = serve(tmp_path, "--ensemble-steps=measured", "--execution-threads=measured").wait_until_started()
    client = grpc_client.InferenceServerClient(server.grpc)
    for number in range(40):
        numbers = np.array([[number / 10, 0]], np.float32)
        request = grpc_client.InferInput("numbers", [1, 2], "FP32")
        request.set_data_from_numpy(numbers)
        shares = client.infer("both", [request]).as_numpy("shares")
        powers = np.exp(2 * numbers.astype(np.float64))
        np.testing.assert_allclose(shares, powers / powers.sum(), rtol=1e-6)
    assert '"fused"' in json.dumps(explained(server, "share"))

"""Small requests make a model quick, whose next request is large: no network thread computes that one itself."""

from __future__ import annotations

import io
import itertools
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from onnx import TensorProto, helper
from PIL import Image
from support.models import add_model, busy
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

VECTORS = Path(__file__).parents[3] / "crates" / "steps" / "vectors" / "text"

SMALL_REQUESTS = 200
"""As many make a model quick on a machine that is busy, too."""

POWERS = """
input { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] }
"""


def add_text_model(repository: Path, name: str, kind: str, **changed: Any) -> None:
    (repository / name / "1").mkdir(parents=True)
    document = json.loads((VECTORS / f"{kind}.json").read_text(encoding="utf-8"))
    for key, value in changed.items():
        document[key] = document[key] | value if isinstance(document.get(key), dict) else value
    (repository / name / "1" / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    (repository / name / "config.pbtxt").write_text('backend: "tokenizer" max_batch_size: 8')


def powers() -> Any:
    """The ninth power of a matrix of any size."""
    names = ["X", *(f"X{power}" for power in range(2, 9)), "Y"]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "n"]) for name in ("X", "Y")]
    nodes = [helper.make_node("MatMul", [before, "X"], [name]) for before, name in itertools.pairwise(names)]
    graph = helper.make_graph(nodes, "powers", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    (repository / "picture" / "1").mkdir(parents=True)
    (repository / "picture" / "config.pbtxt").write_text(
        'backend: "picture" parameters { key: "resize" value { string_value: "4x4" } }'
    )
    add_text_model(repository, "unigram", "unigram")
    add_text_model(repository, "wordpiece", "wordpiece", model={"max_input_chars_per_word": 1000})
    add_model(repository, "powers", powers(), config=POWERS)
    add_model(repository, "busy", busy(64))
    return serve_module(repository, "--turn-clock=cpu", "--execution-threads=measured").wait_until_started()


def long_turns(server: ServerProcess) -> float:
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counts = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("alipes_network_long_turns_total{")]
    assert counts
    return sum(counts)


def webp(width: int, height: int) -> Any:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "WEBP", lossless=True)
    return np.array([file.getvalue()], object)


def text(value: str) -> Any:
    return np.array([[value.encode()]], object)


def matrix(side: int) -> Any:
    return np.zeros((side, side), np.float32)


CASES = {
    # Both files have some tens of bytes.
    "picture": ("picture", lambda: webp(4, 4), lambda: webp(16383, 600)),
    "unigram": ("text", lambda: text("The detectors listen"), lambda: text("a" * 60_000)),
    "wordpiece": ("text", lambda: text("The detectors listen"), lambda: text(f"{'a' * 1000} " * 4)),
    "powers": ("X", lambda: matrix(2), lambda: matrix(500)),
    "busy": ("STEPS", lambda: np.array([1]), lambda: np.array([20_000])),
}


@pytest.mark.parametrize("model", CASES)
def test_small_requests_do_not_bring_large_ones_onto_a_network_thread(server: ServerProcess, model: str) -> None:
    name, small, large = CASES[model]
    before = long_turns(server)
    with Client(server.http) as client:
        for _ in range(SMALL_REQUESTS):
            client.infer(model, {name: small()})
        client.infer(model, {name: large()})
    assert long_turns(server) == before


def test_a_tokenizer_that_asks_for_too_much_stops_no_other_model(serve: Serve, tmp_path: Path) -> None:
    add_text_model(tmp_path, "whole", "wordpiece")
    padding = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    add_text_model(tmp_path, "wide", "wordpiece", padding={"strategy": {"Fixed": 4_000_000_000}} | padding)
    replaces = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 96}
    add_text_model(tmp_path, "long", "unigram", normalizer={"type": "Sequence", "normalizers": [replaces] * 4})
    server = serve(tmp_path, "--exit-on-error=false").wait_until_started()
    with Client(server.http) as client:
        assert client.infer("whole", {"text": text("how")})["input_ids"].shape == (1, 3)
    asked = urllib.request.Request(f"http://{server.http}/v2/repository/index", method="POST")
    with urllib.request.urlopen(asked) as answer:
        reasons = {entry["name"]: entry.get("reason", "") for entry in json.load(answer)}
    assert "rows would be filled up to 4000000000 tokens, the most is 65536" in reasons["wide"]
    assert "it has 96 bytes in the place of what it replaces, the most is 64" in reasons["long"]

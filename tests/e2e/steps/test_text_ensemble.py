"""Texts go in, texts come out: a tokenizer, a small network and a detokenizer, over every protocol."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from alipes import Client, InferError
from onnx import TensorProto, helper, numpy_helper
from support.models import add_model
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

VECTORS = Path(__file__).parents[3] / "crates" / "steps" / "vectors" / "text"
RECORDED = json.loads((VECTORS / "expected.json").read_text(encoding="utf-8"))

VECTORS_OF_TOKENS = np.stack([np.arange(300.0), np.arange(300.0) ** 2], axis=1).astype(np.float32)

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "back" data_type: TYPE_STRING dims: [ 1 ] }
ensemble_scheduling { step [
  { model_name: "wordpiece" model_version: -1 input_map { key: "text" value: "text" }
    output_map { key: "input_ids" value: "ids" } output_map { key: "attention_mask" value: "mask" } },
  { model_name: "masked" model_version: -1
    input_map { key: "ids" value: "ids" } input_map { key: "mask" value: "mask" }
    output_map { key: "y" value: "kept" } },
  { model_name: "join" model_version: -1 input_map { key: "ids" value: "kept" }
    output_map { key: "text" value: "back" } }
] }
"""

POOLED = """
platform: "ensemble"
max_batch_size: 8
input { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "meaning" data_type: TYPE_FP32 dims: [ 2 ] }
ensemble_scheduling { step [
  { model_name: "wordpiece" model_version: -1 input_map { key: "text" value: "text" }
    output_map { key: "input_ids" value: "ids" } output_map { key: "attention_mask" value: "mask" } },
  { model_name: "embed" model_version: -1 input_map { key: "ids" value: "ids" }
    output_map { key: "vectors" value: "vectors" } },
  { model_name: "mean" model_version: -1
    input_map { key: "vectors" value: "vectors" } input_map { key: "attention_mask" value: "mask" }
    output_map { key: "vector" value: "meaning" } }
] }
"""

MEAN = """
backend: "mean_pooling"
max_batch_size: 8
input [
  { name: "vectors" data_type: TYPE_FP32 dims: [ -1, 2 ] },
  { name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] }
]
"""

PAIRS = """
max_batch_size: 4
input [
  { name: "question" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "passage" data_type: TYPE_STRING dims: [ 1 ] }
]
output [
  { name: "token_type_ids" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "input_ids" data_type: TYPE_INT32 dims: [ -1 ] }
]
"""


def parameter(key: str, value: object) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def product() -> Any:
    """A network that lets tokens through where the mask is 1."""
    sides = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in ("ids", "mask", "y")
    ]
    graph = helper.make_graph([helper.make_node("Mul", ["ids", "mask"], ["y"])], "masked", sides[:2], sides[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def embedding() -> Any:
    """A network that has a vector for each token: its number, and the square of that."""
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", "tokens", 2])
    table = numpy_helper.from_array(VECTORS_OF_TOKENS, "table")
    look = helper.make_node("Gather", ["table", "ids"], ["vectors"], axis=0)
    graph = helper.make_graph([look], "embed", [ids], [vectors], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def add_step(repository: Path, name: str, config: str = "", kind: str = "wordpiece") -> None:
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(config)
    shutil.copyfile(VECTORS / f"{kind}.json", version / "tokenizer.json")


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for kind in RECORDED:
        add_step(repository, kind, "max_batch_size: 8", kind)
    add_step(repository, "alone")
    add_step(repository, "pairs", PAIRS)
    add_step(repository, "fixed", parameter("max_length", 6) + parameter("padding", "max_length"))
    add_step(repository, "short", "max_batch_size: 8\n" + parameter("max_text_bytes", 20))
    add_step(repository, "join", 'backend: "detokenizer" max_batch_size: 8')
    add_model(repository, "masked", product(), config="max_batch_size: 8 dynamic_batching { }")
    (repository / "through" / "1").mkdir(parents=True)
    (repository / "through" / "config.pbtxt").write_text(ENSEMBLE)
    add_model(repository, "embed", embedding(), config="max_batch_size: 8")
    for name, config in (("mean", MEAN), ("pooled", POOLED)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
    (repository / "damaged" / "1").mkdir(parents=True)
    (repository / "damaged" / "1" / "tokenizer.json").write_text('{"model": {}}')
    return serve_module(repository, "--exit-on-error=false")


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


def texts(*values: str | bytes) -> Any:
    return np.array([[value.encode() if isinstance(value, str) else value] for value in values], object)


@pytest.mark.parametrize("kind", RECORDED)
def test_each_text_has_the_tokens_that_were_recorded(client: Client, kind: str) -> None:
    for one in RECORDED[kind]:
        if one["pair"] is None:
            found = client.infer(kind, {"text": texts(one["text"])})
            assert found["input_ids"].tolist() == [one["ids"]]
            assert found["attention_mask"].tolist() == [one["mask"]]
            assert found["token_type_ids"].tolist() == [one["types"]]


def test_a_pair_has_types_of_its_tokens(client: Client) -> None:
    [one] = [one for one in RECORDED["wordpiece"] if one["pair"] == "" and one["text"]] or [RECORDED["wordpiece"][-1]]
    found = client.infer("pairs", {"question": texts(one["text"]), "passage": texts(one["pair"])})
    assert (found["input_ids"].tolist(), found["token_type_ids"].tolist()) == ([one["ids"]], [one["types"]])
    assert found["input_ids"].dtype == np.int32


def test_a_model_without_batches_answers_one_row(client: Client) -> None:
    found = client.infer("alone", {"text": np.array([b"How do I stop a server?"], object)})["input_ids"]
    assert found.tolist() == RECORDED["wordpiece"][0]["ids"]


def test_rows_are_filled_up_to_a_length(client: Client) -> None:
    found = client.infer("fixed", {"text": np.array([b"How"], object)})
    assert found["attention_mask"].tolist() == [1, 1, 1, 0, 0, 0]


def test_texts_come_back_through_a_network(client: Client) -> None:
    found = client.infer("through", {"text": texts("How do I stop a server?", "where is the station")})["back"]
    assert found.tolist() == [[b"how do i stop a server?"], [b"where is the station"]]


def test_tokens_that_fill_up_do_not_count_in_the_mean(client: Client) -> None:
    rows = [RECORDED["wordpiece"][0], RECORDED["wordpiece"][1]]
    found = client.infer("pooled", {"text": texts(*(row["text"] for row in rows))})["meaning"]
    wanted = [VECTORS_OF_TOKENS[row["ids"]].mean(axis=0) for row in rows]
    assert len({len(row["ids"]) for row in rows}) == 2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_same_over_grpc(server: ServerProcess) -> None:
    tensor = grpc_client.InferInput("text", [1, 1], "BYTES")
    tensor.set_data_from_numpy(texts("The detectors listen"))
    with grpc_client.InferenceServerClient(server.grpc) as client:
        answer = client.infer("through", [tensor]).as_numpy("back")
    assert answer is not None and answer.tolist() == [[b"the detectors listen"]]


def test_plain_json_is_enough(server: ServerProcess) -> None:
    tensor = {"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": ["Zwei Züge"]}
    asked = urllib.request.Request(
        f"http://{server.http}/v2/models/through/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    with urllib.request.urlopen(asked) as answer:
        assert json.load(answer)["outputs"][0]["data"] == ["zwei zuge"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"x" * 21, "it has 21 bytes, the most is 20"),
        (b"caf\xe9", "it is not UTF-8: the byte at 3"),
    ],
)
def test_a_text_that_is_refused_fails_alone(client: Client, text: bytes, words: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        bad = pool.submit(client.infer, "short", {"text": texts(text)})
        good = pool.submit(client.infer, "short", {"text": texts("How")})
        with pytest.raises(InferError, match=words):
            bad.result()
        assert good.result()["attention_mask"].tolist() == [[1, 1, 1]]


def test_a_number_that_is_no_token_is_refused(server: ServerProcess) -> None:
    tensor = grpc_client.InferInput("ids", [1, 2], "INT64")
    tensor.set_data_from_numpy(np.array([[2, 99_999]], np.int64))
    with grpc_client.InferenceServerClient(server.grpc) as client, pytest.raises(InferenceServerException) as refused:
        client.infer("join", [tensor])
    assert "token 99999 at position 1 is none of the vocabulary" in str(refused.value)


def test_a_damaged_tokenizer_says_so_and_the_others_serve(server: ServerProcess) -> None:
    asked = urllib.request.Request(f"http://{server.http}/v2/repository/index", b"{}")
    with urllib.request.urlopen(asked) as answer:
        [row] = [row for row in json.load(answer) if row["name"] == "damaged"]
    assert "it is no tokenizer that this release reads" in row["reason"]

"""Models of OpenVINO are served: its own format and ONNX, with the answers that OpenVINO gives in this process."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client, InferError
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.worker.frameworks.opened import Opening
from alipes.worker.loading import LoadError
from support.framework_models import executions, parameter, reason
from support.models import times
from support.server import ServerProcess

openvino = pytest.importorskip("openvino", reason="models of OpenVINO need it: pip install 'alipes[openvino]'")
operations = pytest.importorskip("openvino.opset13")

pytestmark = [pytest.mark.extra("openvino"), pytest.mark.timeout(600)]

Serve = Callable[..., ServerProcess]
ROWS = np.random.default_rng(0).standard_normal((3, 4)).astype("f4")
WEIGHTS = np.random.default_rng(1).standard_normal((4, 2)).astype("f4")
IDLE = "max_sequence_idle_microseconds: 60000000"
OLDEST = f"sequence_batching {{ oldest {{ max_candidate_sequences: 8 }} {IDLE} }}\n"
BATCHED = "max_batch_size: 8\n"


def network(rows: int = -1) -> Any:
    """Four numbers a row, of which it makes two and their sum."""
    x = operations.parameter([rows, 4], np.float32, name="x")
    y = operations.relu(operations.matmul(x, operations.constant(WEIGHTS), False, False))
    total = operations.reduce_sum(y, operations.constant(np.array([1])), keep_dims=True)
    for made, name in ((y, "y"), (total, "total")):
        made.output(0).set_names({name})
    return openvino.Model([y, total], [x], "network")


def echo(kind: Any, shape: list[int]) -> Any:
    """Answers its input."""
    x = operations.parameter(shape, kind, name="x")
    y = operations.reshape(x, operations.constant(np.array([0] * len(shape))), True)
    y.output(0).set_names({"y"})
    return openvino.Model([y], [x], "echo")


def total(shape: list[int]) -> Any:
    """Adds up what it gets, call after call."""
    x = operations.parameter(shape, np.float32, name="x")
    before = operations.read_value(operations.constant(np.zeros([1] * len(shape), "f4")), "total", np.float32, shape)
    after = operations.add(before, x)
    y = operations.result(operations.multiply(after, operations.constant(np.float32(1))))
    y.input(0).get_source_output().set_names({"y"})
    return openvino.Model([y], [operations.assign(after, "total")], [x], "total")


def texts() -> Any:
    """Answers its texts."""
    x = operations.parameter([-1, 2], openvino.Type.string, name="x")
    x.output(0).set_names({"x"})
    return openvino.Model([operations.result(x, name="y")], [x], "texts")


def doubled() -> Any:
    """Twice a number without axes."""
    x = operations.parameter([], np.float32, name="x")
    y = operations.multiply(x, operations.constant(np.float32(2)))
    y.output(0).set_names({"y"})
    return openvino.Model([y], [x], "doubled")


def add(repository: Path, name: str, model: Any, config: str | None = None) -> Path:
    """Saves a model; gives the folder of its version."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
    if config is not None:
        (repository / name / "config.pbtxt").write_text(f'backend: "openvino"\n{config}')
    return folder


def expected(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What OpenVINO answers in this process."""
    found = openvino.Core().compile_model(network(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(rows)
    return found["y"], found["total"]


LISTED = """
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [2] }]
dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 500000 }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """Good models beside bad ones; each is loaded by itself, however long that takes."""
    repository = tmp_path_factory.mktemp("models")
    add(repository, "plain", network())
    add(repository, "listed", network(), BATCHED + LISTED)
    add(repository, "one_row", network(rows=1), BATCHED)
    add(repository, "fixed", network(rows=3))
    padded = parameter("ENABLE_BATCH_PADDING", "YES")
    add(repository, "throughput", network(), padded + parameter("PERFORMANCE_HINT", "throughput"))
    add(repository, "twice", network(), "instance_group [{ kind: KIND_CPU count: 2 }]\n")
    add(repository, "half", echo(np.float16, [-1, 2]))
    add(repository, "truth", echo(np.bool_, [-1, 2]))
    add(repository, "long", echo(np.int64, [-1, 2]))
    add(repository, "wide", echo(np.float32, [-1, -1]), "max_batch_size: 0\n")
    _add_onnx(repository)
    add(repository, "state", total([-1, 1]), BATCHED)
    add(repository, "sequences", total([-1, 1]), BATCHED + OLDEST)
    add(repository, "slots", total([1]), f"sequence_batching {{ {IDLE} }}\n")
    add(repository, "texts", texts())
    add(repository, "doubled", doubled())
    (add(repository, "truncated", network()) / "model.xml").write_bytes(b'<net name="m" version="11"><lay')
    (add(repository, "no_file", network(), "") / "model.xml").unlink()
    add(repository, "other_type", network(), BATCHED + LISTED.replace("FP32", "FP64", 1))
    server = serve_module(repository, "--model-control-mode=explicit")
    with Client(server.http) as client:
        for model in repository.iterdir():
            with pytest.raises(InferError) if model.name in BAD else nullcontext():
                client.load(model.name)
    return server


BAD = {
    "truncated": "cannot be loaded from 'model.xml': the framework cannot read it",
    "no_file": "holds no model.xml or model.onnx",
    "state": "it keeps a state from one call to the next (variables of ReadValue and Assign: total)",
    "other_type": "input 'x': the configuration has datatype FP64, the file FP32",
}


def _add_onnx(repository: Path) -> None:
    folder = repository / "graph" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(times(3.0, columns=4).SerializeToString())
    (repository / "graph" / "config.pbtxt").write_text('backend: "openvino"\n')


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


@pytest.mark.parametrize("model", ["plain", "listed", "one_row", "fixed", "throughput", "twice"])
def test_rows_get_the_answers_of_openvino(client: Client, model: str) -> None:
    found = client.infer(model, {"x": ROWS})
    y, total = expected(ROWS)
    np.testing.assert_allclose(found["y"], y, rtol=1e-6)
    if model != "listed":
        np.testing.assert_allclose(found["total"], total, rtol=1e-6)


def test_the_file_completes_its_configuration(client: Client) -> None:
    config = client.config("plain")
    assert (config["backend"], config["default_model_filename"], config["max_batch_size"]) == (
        "openvino",
        "model.xml",
        4,
    )
    assert [(tensor["name"], tensor["dims"]) for tensor in (*config["input"], *config["output"])] == [
        ("x", [4]),
        ("y", [2]),
        ("total", [1]),
    ]


def test_a_file_with_a_fixed_number_of_rows_takes_just_these(client: Client) -> None:
    assert client.config("fixed")["max_batch_size"] == 0
    assert client.config("one_row")["max_batch_size"] == 8
    with pytest.raises(InferError, match=r"takes the shape \[3,4\]"):
        client.infer("fixed", {"x": ROWS[:2]})


def test_an_onnx_model_runs_on_openvino(client: Client) -> None:
    assert np.array_equal(client.infer("graph", {"X": ROWS})["Y"], ROWS * np.float32(3))
    assert client.config("graph")["backend"] == "openvino"


@pytest.mark.parametrize(("model", "kind"), [("half", "f2"), ("truth", "?"), ("long", "i8")])
def test_datatypes_come_back_as_they_went(client: Client, model: str, kind: str) -> None:
    sent = np.array([[0, 1], [3, 2]]).astype(kind)
    found = client.infer(model, {"x": sent})["y"]
    assert found.dtype == sent.dtype
    assert np.array_equal(found, sent)


def test_requests_run_together_and_get_their_own_rows(client: Client) -> None:
    single = [ROWS[at : at + 1] for at in (0, 1, 2, 0)]
    before = executions(client, "listed")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: client.infer("listed", {"x": row})["y"], single))
    for row, answer in zip(single, found, strict=True):
        np.testing.assert_allclose(answer, expected(row)[0], rtol=1e-6)
    assert executions(client, "listed") - before < 4


def test_requests_of_different_widths_keep_their_answers(client: Client) -> None:
    sent = [np.full((2, width), width, "f4") for width in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: client.infer("wide", {"x": one})["y"], sent))
    assert all(np.array_equal(*pair) for pair in zip(sent, found, strict=True))


@pytest.mark.parametrize(("model", "shape"), [("sequences", (1, 1)), ("slots", (1,))])
def test_each_sequence_of_a_graph_with_variables_has_its_own_state(client: Client, model: str, shape: Any) -> None:
    def step(sequence: int, value: float, **flags: bool) -> float:
        found = client.infer(model, {"x": np.full(shape, value, "f4")}, sequence_id=sequence, **flags)
        return float(found["y"].reshape(()))

    for _ in range(2):  # a sequence that begins again begins anew
        for sequence in range(1, 5):
            assert step(sequence, 4, sequence_start=True) == 4
            if model == "slots":
                assert (step(sequence, 3), step(sequence, 2, sequence_end=True)) == (7, 9)
    if model == "sequences":
        assert [step(sequence, sequence) for sequence in range(1, 5)] == [5, 6, 7, 8]
        with pytest.raises(InferError):
            client.infer(model, {"x": np.zeros((1, 2), "f4")}, sequence_id=1)
        assert [step(sequence, 1, sequence_end=True) for sequence in range(4, 0, -1)] == [9, 8, 7, 6]


def test_texts_come_back_as_they_went(client: Client) -> None:
    [output] = client.config("texts")["output"]
    sent = np.array([[b"a", b"\xff\x00b"], [b"", "é".encode()]], object)
    assert client.infer("texts", {"x": sent})[output["name"]].tolist() == sent.tolist()


def test_a_number_without_axes_is_sent_with_one(client: Client) -> None:
    assert client.infer("doubled", {"x": np.array([3], "f4")})["y"].tolist() == [6]


@pytest.mark.parametrize("model", BAD)
def test_a_server_says_why_a_model_is_not_served(server: ServerProcess, model: str) -> None:
    assert BAD[model] in reason(server, model)


def opened(file: Path, config: str = "") -> Any:
    """A model as a worker opens it."""
    from alipes.worker.frameworks.openvino import open_model

    return open_model(Opening("m", file, json.loads(config_json(parse_pbtxt(config, file)))))


def refusal(file: Path, config: str = "") -> str:
    """Why a worker does not open a model."""
    with pytest.raises(LoadError) as failure:
        opened(file, config)
    return str(failure.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = add(tmp_path, "m", network()) / "model.xml"
    content = file.read_bytes()
    file.write_bytes(content[:300])
    assert "cannot be loaded from 'model.xml': the framework cannot read it" in refusal(file)
    file.write_bytes(content.replace(b'version="11"', b'version="12"', 1))
    assert "its format is version 12, which openvino 20" in refusal(file)
    file.write_bytes(content.replace(b'version="opset1"', b'version="opset99"'))
    assert "opset99" in refusal(file)
    file.write_bytes(b"<html></html>")
    assert "it is no model of OpenVINO, whose .xml begins with <net" in refusal(file)
    file.write_bytes(content)
    file.with_suffix(".bin").write_bytes(b"123")
    assert "Incorrect weights in bin file" in refusal(file)
    file.with_suffix(".bin").unlink()
    assert "its weights are missing: put model.bin beside it" in refusal(file)
    graph = file.with_suffix(".onnx")
    graph.write_bytes(b"\x08")
    assert "cannot be loaded from 'model.onnx': the framework cannot read it" in refusal(graph)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("TARGET_DEVICE", "TPU", "parameter TARGET_DEVICE is 'TPU', OpenVINO finds here: CPU"),
        ("PERFORMANCE_HINT", "FAST", "PERFORMANCE_HINT must be one of LATENCY, THROUGHPUT"),
        ("NUM_STREAMS", "none", "parameter NUM_STREAMS of model 'm' must be a number from 1 on, got 'none'"),
        ("INFERENCE_NUM_THREADS", "0", "INFERENCE_NUM_THREADS of model 'm' must be a number from 1 on, got '0'"),
    ],
)
def test_a_wrong_parameter_is_refused(tmp_path: Path, key: str, value: str, words: str) -> None:
    assert words in refusal(add(tmp_path, "m", network()) / "model.xml", parameter(key, value))


def test_threads_are_those_of_the_parameter(tmp_path: Path) -> None:
    file = add(tmp_path, "m", network()) / "model.xml"
    model = opened(file, parameter("INFERENCE_NUM_THREADS", "1"))
    assert model.compiled.get_property("INFERENCE_NUM_THREADS") == 1
    np.testing.assert_allclose(model.run({"x": ROWS})["y"], expected(ROWS)[0], rtol=1e-6)


def test_a_parameter_that_does_nothing_is_named_in_the_log(server: ServerProcess) -> None:
    words = "parameter 'ENABLE_BATCH_PADDING' of model 'throughput' is ignored: batches have any number of rows"
    assert server.output.count(words) == 1


def test_an_answer_stays_while_others_are_made(tmp_path: Path) -> None:
    model = opened(add(tmp_path, "m", network()) / "model.xml")
    answers = [model.run({"x": ROWS + number}) for number in range(3)]
    for number, answer in enumerate(answers):
        np.testing.assert_allclose(answer["y"], expected(ROWS + number)[0], rtol=1e-6)
    del answers, answer
    gc.collect()
    for number in range(10):
        view = model.run({"x": ROWS + number})["y"][1:]
        np.testing.assert_allclose(view, expected(ROWS + number)[0][1:], rtol=1e-6)
    assert len(model._requests._free) <= 3

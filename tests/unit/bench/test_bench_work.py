"""What the bench sends is what it says it sends, and a wrong answer is noticed."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from bench import work as bench_work
from bench.models import repository
from bench.models.model import Model
from bench.models.python_models import PYTHON_MODELS
from bench.models.repository import MODELS
from bench.work import (
    BINARY,
    GRPC,
    GRPC_PREFIX_BYTES,
    JSON,
    JSON_DOUBLES,
    REGION,
    SHARED,
    STREAM,
    Work,
    WrongAnswer,
)

FORMS = (JSON, JSON_DOUBLES, BINARY, GRPC, SHARED)
MLP = MODELS["mlp"]
STREAMED = Work(MODELS["counts"], STREAM)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "bench"
    monkeypatch.setattr(repository, "WORK", folder)
    monkeypatch.setattr(bench_work, "WORK", folder)


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _answer_headers(work: Work) -> dict[str, str]:
    return {} if work.form == GRPC else _lower(work.answer_headers)


@pytest.mark.parametrize("form", [JSON, JSON_DOUBLES])
def test_json_holds_the_row_to_the_last_bit(form: str) -> None:
    tensor = json.loads(Work(MLP, form).body)["inputs"][0]
    assert tensor["shape"] == [1, 64]
    assert np.array_equal(np.asarray(tensor["data"], np.float32), MLP.row().ravel())


def test_json_numbers_have_the_digits_of_their_type() -> None:
    first = MLP.row().ravel()[0]
    assert f"[{first!s}, ".encode() in Work(MLP, JSON).body
    assert f"[{float(first)!r}, ".encode() in Work(MLP, JSON_DOUBLES).body
    assert len(str(first)) < len(repr(float(first)))


def test_the_binary_header_ends_where_the_header_says() -> None:
    work = Work(MLP, BINARY)
    length = int(work.headers["Inference-Header-Content-Length"])
    assert json.loads(work.body[:length])["inputs"][0]["parameters"] == {"binary_data_size": 256}
    assert work.body[length:] == MLP.row().tobytes()


def test_a_shared_request_says_where_the_tensor_is() -> None:
    parameters = json.loads(Work(MLP, SHARED).body)["inputs"][0]["parameters"]
    assert parameters == {"shared_memory_region": REGION, "shared_memory_byte_size": 256}


def test_a_grpc_body_is_one_uncompressed_frame() -> None:
    body = Work(MLP, GRPC).body
    assert struct.unpack(">BI", body[:GRPC_PREFIX_BYTES]) == (0, len(body) - GRPC_PREFIX_BYTES)
    request = service_pb2.ModelInferRequest.FromString(body[GRPC_PREFIX_BYTES:])
    assert list(request.raw_input_contents) == [MLP.row().tobytes()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["mlp", "image"])
def test_the_answer_of_a_floor_passes_the_check(model: str, form: str) -> None:
    work = Work(MODELS[model], form)
    work.check(work.answer, _answer_headers(work))


@pytest.mark.parametrize("form", FORMS)
def test_another_number_is_a_wrong_answer(form: str) -> None:
    work, other = Work(MLP, form), Work(MODELS["image"], form)
    with pytest.raises(WrongAnswer, match="expected"):
        work.check(other.answer, _answer_headers(other))


@pytest.mark.parametrize("form", FORMS)
def test_an_error_body_is_a_wrong_answer(form: str) -> None:
    with pytest.raises(WrongAnswer, match="cannot read"):
        Work(MLP, form).check(b'{"error":"no"}', {})


def _responses(indexes: Sequence[float], error: str = "") -> list[bytes]:
    responses = [service_pb2.ModelStreamInferResponse(error_message=error) for _ in indexes]
    for response, index in zip(responses, indexes, strict=True):
        response.infer_response.raw_output_contents.append(struct.pack("<f", index))
    return [response.SerializeToString() for response in responses]


def test_the_responses_of_a_stream_are_all_there_and_in_order() -> None:
    STREAMED.check_stream(_responses(range(100)))


@pytest.mark.parametrize(
    "messages",
    [_responses(range(99)), _responses([*range(98), 99, 98]), _responses(range(101)), _responses(range(100), "no")],
    ids=["missing", "out of order", "too many", "error"],
)
def test_a_stream_that_is_not_what_it_must_be_is_a_wrong_answer(messages: list[bytes]) -> None:
    with pytest.raises(WrongAnswer, match="expected 0 to 99"):
        STREAMED.check_stream(messages)


@pytest.mark.parametrize("model", PYTHON_MODELS, ids=lambda model: model.name)
def test_a_python_model_is_batched_and_decoupled_where_it_says_so(model: Model) -> None:
    text = model.config_text()
    assert 'backend: "python"' in text
    assert ("dynamic_batching { }" in text) == (model.max_batch_size > 0)
    assert ("decoupled: true" in text) == (model.name == "counts")


def test_a_stand_in_has_another_backend_without_its_settings() -> None:
    text = MLP.config_text("python")
    assert 'backend: "python"' in text
    assert "intra_op_thread_count" in MLP.config_text()
    assert "intra_op_thread_count" not in text


def test_a_repository_of_one_model_holds_that_model_alone() -> None:
    folder = repository.repository("mlp")
    assert [path.name for path in folder.iterdir()] == ["mlp"]
    assert Path(folder / "mlp" / "1" / "model.onnx").is_file()

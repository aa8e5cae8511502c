"""What the bench sends is what it says it sends, and a wrong answer is noticed."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from bench import work as bench_work
from bench.models import repository
from bench.models.repository import MODELS, input_row
from bench.work import BINARY, GRPC, GRPC_PREFIX_BYTES, JSON, JSON_DOUBLES, Work, WrongAnswer

FORMS = (JSON, JSON_DOUBLES, BINARY, GRPC)
MLP = MODELS["mlp"]


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
    assert np.array_equal(np.asarray(tensor["data"], np.float32), input_row(MLP).ravel())


def test_json_numbers_have_the_digits_of_their_type() -> None:
    first = input_row(MLP).ravel()[0]
    assert f"[{first!s}, ".encode() in Work(MLP, JSON).body
    assert f"[{float(first)!r}, ".encode() in Work(MLP, JSON_DOUBLES).body
    assert len(str(first)) < len(repr(float(first)))


def test_the_binary_header_ends_where_the_header_says() -> None:
    work = Work(MLP, BINARY)
    length = int(work.headers["Inference-Header-Content-Length"])
    assert json.loads(work.body[:length])["inputs"][0]["parameters"] == {"binary_data_size": 256}
    assert work.body[length:] == input_row(MLP).tobytes()


def test_a_grpc_body_is_one_uncompressed_frame() -> None:
    body = Work(MLP, GRPC).body
    assert struct.unpack(">BI", body[:GRPC_PREFIX_BYTES]) == (0, len(body) - GRPC_PREFIX_BYTES)
    request = service_pb2.ModelInferRequest.FromString(body[GRPC_PREFIX_BYTES:])
    assert list(request.raw_input_contents) == [input_row(MLP).tobytes()]


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


def test_a_repository_of_one_model_holds_that_model_alone() -> None:
    folder = repository.repository("mlp")
    assert [path.name for path in folder.iterdir()] == ["mlp"]
    assert Path(folder / "mlp" / "1" / "model.onnx").is_file()

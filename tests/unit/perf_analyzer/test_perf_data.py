"""What is sent: random values, zeros, documents and folders."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.compat.perf_analyzer.answer_check import AnswerCheck
from alipes.compat.perf_analyzer.data_files import from_files
from alipes.compat.perf_analyzer.dataset import Dataset
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.generated_data import generated
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.other_services import prepare_posts
from alipes.compat.perf_analyzer.settings import SentData, Settings, Target


def model(max_batch: int = 4, optional: bool = False) -> Model:
    batch = [-1] if max_batch else []
    ports = [
        {"name": "x", "datatype": "FP32", "shape": [*batch, 2]},
        {"name": "n", "datatype": "BYTES", "shape": [*batch, 1]},
        {"name": "v", "datatype": "INT64", "shape": [*batch, -1]},
    ]
    outputs = [{"name": "y", "datatype": "FP32", "shape": [*batch, 2]}]
    config = {
        "max_batch_size": max_batch,
        "input": [{"name": "n", "optional": optional}, {"name": "v", "optional": True}],
    }
    return Model.read({"name": "m", "inputs": ports, "outputs": outputs}, config)


def read(tmp_path: Path, document: Any, shapes: dict[str, tuple[int, ...]] | None = None) -> Dataset:
    file = tmp_path / "data.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return from_files(model(optional=True), SentData(shapes=shapes or {}), [file])


def test_random_data_has_the_declared_types_and_shapes() -> None:
    dataset = generated(model(), SentData(batch=3, text_length=5))
    batches = dataset.batches(3, has_batch_axis=True)
    assert len(batches) == 16
    first, second = batches[0][0], batches[1][0]
    assert (first["x"].shape, first["x"].dtype, first["n"].shape) == ((3, 2), np.float32, (3, 1))
    assert len(first["n"][0, 0]) == 5
    assert not np.array_equal(first["x"], second["x"])


def test_zeros_and_words_are_sent_where_they_are_wanted() -> None:
    [(step, _)] = generated(model(), SentData(source="zero")).batches(1, has_batch_axis=True)
    assert not step["x"].any()
    step = generated(model(), SentData(text="abc")).streams[0][0]
    assert step["n"].tolist() == [b"abc"]


def test_a_shape_that_stays_open_is_refused() -> None:
    ports = [{"name": "INPUT0", "datatype": "FP32", "shape": [-1]}]
    opened = Model.read({"name": "m", "inputs": ports, "outputs": []}, {"max_batch_size": 0})
    with pytest.raises(Failed, match="input INPUT0 contains dynamic shape, provide shapes to send along"):
        generated(opened, SentData())
    assert generated(opened, SentData(shapes={"INPUT0": (3,)})).streams[0][0]["INPUT0"].shape == (3,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1.5, 2], [1.5, 2]),
        ([[1.5], [2]], [1.5, 2]),
        ({"content": [1.5, 2], "shape": [2]}, [1.5, 2]),
        ({"b64": base64.b64encode(struct.pack("<2f", 1.5, 2)).decode()}, [1.5, 2]),
        ({"content": {"b64": base64.b64encode(struct.pack("<2f", 1.5, 2)).decode()}, "shape": [2]}, [1.5, 2]),
    ],
)
def test_a_tensor_may_be_written_in_many_ways(value: Any, expected: list[float], tmp_path: Path) -> None:
    dataset = read(tmp_path, {"data": [{"x": value}]})
    assert dataset.streams[0][0]["x"].tolist() == expected
    assert dataset.message == " Successfully read data for 1 stream/streams with 1 step/steps."


def test_text_is_a_list_or_lengths_in_base64(tmp_path: Path) -> None:
    encoded = base64.b64encode(struct.pack("<I", 2) + b"ab").decode()
    for value in (["ab"], {"b64": encoded}):
        assert read(tmp_path, {"data": [{"x": [1, 2], "n": value}]}).streams[0][0]["n"].tolist() == [b"ab"]


def test_an_open_size_comes_from_the_document_or_the_option(tmp_path: Path) -> None:
    with_shape = {"data": [{"x": [1, 2], "v": {"content": [1, 2, 3], "shape": [3]}}]}
    assert read(tmp_path, with_shape).streams[0][0]["v"].tolist() == [1, 2, 3]
    without = {"data": [{"x": [1, 2], "v": [1, 2, 3]}]}
    assert read(tmp_path, without, {"v": (3,)}).streams[0][0]["v"].tolist() == [1, 2, 3]


def test_a_shape_stands_beside_base64(tmp_path: Path) -> None:
    encoded = base64.b64encode(struct.pack("<3q", 1, 2, 3)).decode()
    step = {"x": [1, 2], "v": {"b64": encoded, "shape": [3]}}
    assert read(tmp_path, {"data": [step]}).streams[0][0]["v"].tolist() == [1, 2, 3]
    step["x"] = {"b64": base64.b64encode(bytes(12)).decode(), "shape": [3]}
    with pytest.raises(Failed, match="is incompatible with the model's input shape"):
        read(tmp_path, {"data": [step]})


def read_all(tmp_path: Path, *documents: Any) -> Dataset:
    files = [tmp_path / f"{number}.json" for number in range(len(documents))]
    for file, document in zip(files, documents, strict=True):
        file.write_text(json.dumps(document))
    return from_files(model(optional=True), SentData(), files)


def test_steps_of_several_files_are_one_stream(tmp_path: Path) -> None:
    dataset = read_all(tmp_path, {"data": [{"x": [1, 0]}, {"x": [2, 0]}]}, {"data": [{"x": [3, 0]}]})
    assert [[step["x"][0] for step in stream] for stream in dataset.streams] == [[1, 2, 3]]
    assert dataset.message == " Successfully read data for 1 stream/streams with 3 step/steps."


def test_validation_data_belongs_to_its_own_file(tmp_path: Path) -> None:
    known = {"data": [{"x": [3, 0]}], "validation_data": [{"y": [3, 0]}]}
    dataset = read_all(tmp_path, {"data": [{"x": [1, 0]}, {"x": [2, 0]}]}, known)
    pairs = dataset.batches(1, has_batch_axis=True)
    assert [(step["x"][0, 0], {name: array.tolist() for name, array in y.items()}) for step, y in pairs] == [
        (1, {}),
        (2, {}),
        (3, {"y": [[3, 0]]}),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_files_of_steps_and_files_of_streams_do_not_go_together(order: int, tmp_path: Path) -> None:
    documents = [{"data": [{"x": [1, 0]}]}, {"data": [[{"x": [2, 0]}]]}][::order]
    with pytest.raises(Failed, match="Can not have a combination of objects and arrays"):
        read_all(tmp_path, *documents)


def test_batches_take_steps_in_turn(tmp_path: Path) -> None:
    dataset = read(tmp_path, {"data": [{"x": [number, 0]} for number in range(3)]})
    firsts = [step["x"][:, 0].tolist() for step, _ in dataset.batches(2, has_batch_axis=True)]
    assert firsts == [[0, 1], [2, 0], [1, 2]]


def test_streams_and_validation_data_stand_side_by_side(tmp_path: Path) -> None:
    document = {"data": [[{"x": [1, 2]}], [{"x": [3, 4]}]], "validation_data": [[{"y": [1, 2]}], [{"y": [3, 4]}]]}
    dataset = read(tmp_path, document)
    assert dataset.message == " Successfully read data for 2 stream/streams."
    pairs = dataset.batches(1, has_batch_axis=True)
    assert [(step["x"].tolist(), known["y"].tolist()) for step, known in pairs] == [
        ([[1, 2]], [[1, 2]]),
        ([[3, 4]], [[3, 4]]),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"dat": []}, "The json file doesn't contain data field"),
        ("[]", "The json file doesn't contain data field"),
        ('{"data": [', "failed to parse the specified json file for reading provided data"),
        ({"data": []}, "the data field holds no step"),
        ({"data": [{"nope": [1]}]}, r"missing tensor x \( Location stream id: 0, step id: 0\)"),
        ({"data": [{"x": [1, 2], "nope": [1]}]}, "'nope' is not found in the model configuration"),
        ({"data": [{"x": {"shape": [2]}}]}, r"missing content field. \( Location stream id: 0, step id: 0\)"),
        ({"data": [{"x": [1]}]}, "mismatch in the data provided for x. Expected: 8 bytes, Got: 4 bytes"),
        ({"data": [{"x": ["a", 1]}]}, "unable to find float data in json"),
        ({"data": [{"x": [1, True]}]}, "unable to find float data in json"),
        ({"data": [{"x": [1, 2], "v": [1.5]}]}, "needs to have its shape fully defined. See the --shape option."),
        ({"data": [{"x": {"content": [1, 2], "shape": ["a"]}}]}, "shape values must be integers."),
        ({"data": [{"x": {"content": [1, 2], "shape": [-2]}}]}, "shape values must be 0 or more."),
        (
            {"data": [{"x": {"content": [1, 2, 3], "shape": [3]}}]},
            r"supplied shape of \[3\] for input \"x\" is incompat",
        ),
        ({"data": [{"x": 1}]}, "The tensor values are not supported. Expected an array or b64 string"),
        ({"data": [{"x": {"b64": 1}}]}, "the value of b64 field should be of type string"),
        ({"data": [{"x": {"b64": "?"}}]}, "the value of b64 field is no base64"),
        ({"data": [{"x": {"b64": "AAAA"}}]}, "Expected: 8 bytes, Got: 3 bytes"),
        ({"data": [{"x": [1, 2], "n": ["a", "b"]}]}, "has 2 elements, expect 1"),
        ({"data": [{"x": [1, 2]}, [{"x": [1, 2]}]]}, "Can not have a combination of objects and arrays"),
        ({"data": [{"x": [1, 2]}], "validation_data": [{"y": [1, 2]}] * 2}, "doesn't align with 'data' field"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(document: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(Failed, match=message):
        read(tmp_path, document)


def test_a_folder_has_a_file_for_each_input(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(struct.pack("<2f", 1, 2))
    (tmp_path / "n").write_bytes(b"ab\n")
    step = from_files(model(), SentData(), [tmp_path]).streams[0][0]
    assert (step["x"].tolist(), step["n"].tolist()) == ([1, 2], [b"ab"])
    (tmp_path / "x").write_bytes(b"abc")
    with pytest.raises(Failed, match="provided data for input x has byte size 3, expect 8"):
        from_files(model(), SentData(), [tmp_path])
    (tmp_path / "x").unlink()
    with pytest.raises(Failed, match="failed to open file"):
        from_files(model(), SentData(), [tmp_path])


def test_answers_are_compared_with_what_is_expected() -> None:
    check = AnswerCheck(model(), [{"y": np.array([[1, 2]], np.float32)}], "http")
    raw = struct.pack("<2f", 1, 2)
    binary = json.dumps({"outputs": [{"name": "y", "parameters": {"binary_data_size": 8}}]}).encode()
    plain = {"outputs": [{"name": "y", "data": [1.0, 2.0]}]}
    assert check([(0, binary + raw), (1, json.dumps(plain).encode())]) == ""
    assert check([(0, binary + raw[::-1])]) == "Output doesn't match expected output"
    assert "missing output 'y'" in check([(0, b'{"outputs": []}')])


def posts(tmp_path: Path, kind: str, document: Any, **other: Any) -> int:
    file = tmp_path / "posts.json"
    file.write_text(json.dumps(document))
    target = Target("m", kind=kind, url="localhost:1", endpoint="predict")
    return len(prepare_posts(Settings(target, data=SentData(source=[file], **other))).requests)


def test_other_services_get_posts(tmp_path: Path) -> None:
    assert posts(tmp_path, "http", {"data": [{"payload": [{"a": 1}]}] * 3}) == 3
    assert posts(tmp_path, "torchserve", {"data": [{"TORCHSERVE_INPUT": [str(tmp_path / "posts.json")]}]}) == 1
    assert posts(tmp_path, "kserve_v1", {"data": [{"x": [1, 2]}] * 4}, batch=2) == 2


@pytest.mark.parametrize(
    ("kind", "step", "message"),
    [
        ("http", {"a": 1}, "missing payload"),
        ("torchserve", {"TORCHSERVE_INPUT": ["/no/such"]}, "failed to open file"),
        ("torchserve", {"x": [1]}, "missing tensor TORCHSERVE_INPUT"),
        ("kserve_v1", {"x": {"content": [1, 2, 3], "shape": [2]}}, "3 elements do not fit the shape"),
    ],
)
def test_posts_that_cannot_be_made_are_refused(kind: str, step: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(Failed, match=message):
        posts(tmp_path, kind, {"data": [step]})

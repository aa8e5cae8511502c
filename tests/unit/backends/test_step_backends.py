"""Native steps: what their parameters and tensors tell the data plane, and what they may not say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import LoadPlan, prepare_version
from alipes.backends.registry import backend_of
from alipes.config.datatypes import v2_name
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.errors import ConfigError

Prepare = Callable[..., LoadPlan]

SCORES = 'input { name: "s" data_type: TYPE_FP32 dims: [ 10 ] }'


def parameters(**values: object) -> str:
    rows = (f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in values.items())
    return "\n".join(rows)


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    """Prepares a model of this backend, these lines of configuration and these parameters."""

    def prepare(backend: str, *lines: str, **values: object) -> LoadPlan:
        folder = tmp_path / "m"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "config.pbtxt").write_text("\n".join([f'backend: "{backend}"', *lines, parameters(**values)]))
        options = parse_flags([str(tmp_path)], {})
        return prepare_version(Draft(poll_model(folder, "m", options), folder, 1, options), backend_of=backend_of)

    return prepare


def step(plan: LoadPlan) -> dict[str, Any]:
    assert plan.spec["engine"]["kind"] == "native"
    made: dict[str, Any] = plan.spec["engine"]["step"]
    return made


def tensors(plan: LoadPlan, side: str) -> list[tuple[str, str, list[int]]]:
    return [(tensor.name, v2_name(tensor.data_type), list(tensor.dims)) for tensor in getattr(plan.config, side)]


def test_a_step_may_tune_itself(prepare: Prepare) -> None:
    tuned = parameters(**{"tuning.objective_p99_ms": 20})
    plan = prepare("top_k", SCORES, "max_batch_size: 8", tuned, k=3)
    assert plan.spec["tuning"]["objective_p99_us"] == 20_000
    assert step(plan)["count"] == 3
    with pytest.raises(ConfigError, match="it forms no batches that could be tuned: add dynamic_batching"):
        prepare("picture", "max_batch_size: 8", tuned, crop=4)
    plan = prepare("picture", "max_batch_size: 8 dynamic_batching { }", tuned, crop=4)
    assert plan.spec["tuning"]["max_batch_size"] == 8
    with pytest.raises(ConfigError, match=r"there is no such parameter; did you mean 'tuning\.objective_p99_ms'"):
        prepare("softmax", SCORES, "max_batch_size: 8", parameters(**{"tuning.objective_p99": 20}))


def test_a_picture_step_needs_no_parameter(prepare: Prepare) -> None:
    plan = prepare("picture")
    assert step(plan) == {
        "kind": "picture",
        "resize": None,
        "filter": "bilinear",
        "crop": None,
        "channels": "rgb",
        "layout": "nchw",
        "numbers": {"factor": 1.0, "divisor": 255.0, "mean": [0.0] * 3, "std": [1.0] * 3},
        "orient": True,
        "max_pixels": 50_000_000,
    }
    assert tensors(plan, "input") == [("picture", "BYTES", [1])]
    assert tensors(plan, "output") == [("tensor", "FP32", [3, -1, -1])]


def test_the_tensor_of_a_picture_follows_from_the_parameters(prepare: Prepare) -> None:
    plan = prepare("picture", "max_batch_size: 4", resize="256", crop="224x160", layout="nhwc", dtype="UINT8")
    assert tensors(plan, "output") == [("tensor", "UINT8", [160, 224, 3])]
    assert step(plan)["resize"] == {"kind": "short_side", "pixels": 256}
    assert step(plan)["crop"] == (224, 160)
    assert step(plan)["numbers"] is None
    plan = prepare("picture", resize="30x20", channels="L", mean="0.5", std="2", scale="1/127.5")
    assert tensors(plan, "output") == [("tensor", "FP32", [1, 20, 30])]
    assert step(plan)["numbers"] == {"factor": 1.0, "divisor": 127.5, "mean": [0.5], "std": [2.0]}


def test_pictures_run_alone_unless_batching_is_configured(prepare: Prepare) -> None:
    assert prepare("picture", "max_batch_size: 4", crop="8").spec["scheduling"] == {"kind": "direct"}
    assert prepare("softmax", "max_batch_size: 4").spec["scheduling"]["kind"] == "dynamic"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"normalize_mean": 1},
            "parameter 'normalize_mean' of model 'm' is unknown: backend 'picture' has 'mean', 'resize_filter'",
        ),
        (
            {"resize": "224*224"},
            "must be a size such as 224x224 or 256, of 1 to 16384 pixels on a side, got '224\\*224'",
        ),
        ({"resize": "0x5"}, "must be a size"),
        ({"crop": "20000"}, "must be a size"),
        ({"resize_filter": "cubic"}, "must be one of bilinear, bicubic, lanczos, box, nearest, got 'cubic'"),
        ({"channels": "RGBA"}, "must be one of RGB, BGR, L, got 'RGBA'"),
        ({"scale": "1/0"}, "must be a number other than 0, or two with a bar between"),
        ({"scale": "one"}, "must be a number other than 0"),
        ({"mean": "1, 2"}, "must be one number, or one for each of 3 channels, got '1, 2'"),
        ({"mean": "nan"}, "must be one number"),
        ({"std": "1 0 1"}, "must be one number other than 0, or one for each of 3 channels"),
        ({"exif_orientation": "yes"}, "must be an integer from 0 to 1, got 'yes'"),
        ({"max_pixels": "-1"}, "must be an integer from 1 to 1073741824"),
        ({"crop": "200", "max_pixels": "30000"}, "has a 'crop' of more than the 30000 pixels of max_pixels"),
        ({"dtype": "UINT8", "mean": "1"}, "gives bytes, which parameter 'mean' would change"),
    ],
)
def test_a_wrong_parameter_of_a_picture_step_is_named(
    prepare: Prepare, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare("picture", **values)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("max_batch_size: 2", "batches pictures, which then need one size"),
        ('input { name: "p" data_type: TYPE_UINT8 dims: [ 1 ] }', "has 'p' of TYPE_UINT8, expected TYPE_STRING"),
        ('input { name: "p" data_type: TYPE_STRING dims: [ 2 ] }', r"has 'p' with dims \[2\], expected \[1\]"),
        ('output { name: "t" data_type: TYPE_FP16 dims: [ 3, -1, -1 ] }', "expected TYPE_FP32 or TYPE_UINT8"),
        ('output { name: "t" data_type: TYPE_FP32 dims: [ 1, -1, -1 ] }', r"expected \[3, -1, -1\]"),
        ("sequence_batching { }", "keeps no state"),
        (
            'input { name: "p" data_type: TYPE_STRING dims: [ -1 ] reshape { shape: [ -1 ] } }',
            "has a reshape of 'p'",
        ),
        ('input { name: "p" data_type: TYPE_STRING dims: [ 1 ] optional: true }', "needs 'p', in one shape"),
    ],
)
def test_tensors_that_are_not_those_of_a_picture_step_are_refused(prepare: Prepare, lines: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare("picture", lines)


def test_the_best_classes_have_names_scores_and_numbers(prepare: Prepare) -> None:
    plan = prepare("top_k", SCORES, k=3, softmax=1)
    assert step(plan) == {"kind": "top_k", "count": 3, "softmax": True, "outputs": ["labels", "scores", "indices"]}
    assert tensors(plan, "output") == [("labels", "BYTES", [3]), ("scores", "FP32", [3]), ("indices", "INT64", [3])]


def test_labels_are_read_from_the_file_that_a_parameter_names(prepare: Prepare, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "names.txt").write_text("ant\nbee\n")
    assert prepare("top_k", labels="names.txt").spec["outputs"][0]["labels"] == ["ant", "bee"]


def test_outputs_that_are_listed_say_what_is_wanted(prepare: Prepare) -> None:
    outputs = (
        'output { name: "i" data_type: TYPE_INT64 dims: [ 2 ] } output { name: "n" data_type: TYPE_STRING dims: [ 2 ] }'
    )
    assert step(prepare("top_k", SCORES, outputs)) == {
        "kind": "top_k",
        "count": 2,
        "softmax": False,
        "outputs": ["indices", "labels"],
    }


@pytest.mark.parametrize(
    ("lines", "values", "message"),
    [
        (SCORES, {"k": 11}, "is asked for the best 11 of 10 classes"),
        (SCORES, {"k": 0}, "must be an integer from 1 to"),
        ('output { name: "a" data_type: TYPE_FP32 dims: [ 2 ] }', {"k": 3}, r"with dims \[2\], expected \[3\]"),
        (
            'output { name: "a" data_type: TYPE_FP64 dims: [ 2 ] }',
            {},
            "expected TYPE_STRING or TYPE_FP32 or TYPE_INT64",
        ),
        (
            'output [ { name: "a" data_type: TYPE_FP32 dims: 2 }, { name: "b" data_type: TYPE_FP32 dims: 2 } ]',
            {},
            "has two outputs of one type",
        ),
        ('input { name: "s" data_type: TYPE_FP32 dims: [ 2, 5 ] }', {}, r"dims \[2, 5\], expected \[-1\]"),
        ("", {"labels": "missing.txt"}, "failed to open text file"),
    ],
)
def test_best_classes_that_cannot_be_are_refused(
    prepare: Prepare, lines: str, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare("top_k", lines, **values)


def test_shares_have_the_sizes_of_their_scores(prepare: Prepare) -> None:
    plan = prepare("softmax", 'input { name: "s" data_type: TYPE_FP32 dims: [ 2, 5 ] }')
    assert step(plan) == {"kind": "softmax"}
    assert tensors(plan, "output") == [("probabilities", "FP32", [2, 5])]
    with pytest.raises(ConfigError, match="expected TYPE_FP32"):
        prepare("softmax", 'input { name: "s" data_type: TYPE_FP16 dims: [ 5 ] }')


def test_pooling_tells_vectors_from_a_mask_by_their_axes(prepare: Prepare) -> None:
    assert step(prepare("mean_pooling")) == {"kind": "mean_pooling", "vectors": 0, "mask": 1, "normalize": False}
    mask = 'input { name: "m" data_type: TYPE_INT64 dims: [ -1 ] }'
    vectors = 'input { name: "v" data_type: TYPE_FP32 dims: [ -1, 6 ] }'
    plan = prepare("mean_pooling", mask, vectors, normalize=1)
    assert step(plan) == {"kind": "mean_pooling", "vectors": 1, "mask": 0, "normalize": True}
    assert tensors(plan, "output") == [("vector", "FP32", [6])]
    assert step(prepare("mean_pooling", vectors))["mask"] is None
    with pytest.raises(ConfigError, match="needs vectors with dims"):
        prepare("mean_pooling", mask)


def with_tokenizer(prepare: Prepare, tmp_path: Path, *lines: str, **values: object) -> LoadPlan:
    (tmp_path / "m" / "1").mkdir(parents=True, exist_ok=True)
    (tmp_path / "m" / "1" / "tokenizer.json").write_text("{}")
    return prepare("tokenizer", *lines, **values)


def test_a_tokenizer_needs_its_file_alone(prepare: Prepare, tmp_path: Path) -> None:
    plan = with_tokenizer(prepare, tmp_path)
    assert step(plan) == {
        "kind": "tokenizer",
        "file": str(tmp_path / "m" / "1" / "tokenizer.json"),
        "max_length": None,
        "pad_to_max_length": False,
        "pad_to_multiple_of": None,
        "special_tokens": True,
        "max_text_bytes": 1 << 18,
        "outputs": ["ids", "mask", "types"],
    }
    assert tensors(plan, "input") == [("text", "BYTES", [1])]
    assert tensors(plan, "output")[0] == ("input_ids", "INT64", [-1])


def test_a_pair_is_a_second_input(prepare: Prepare, tmp_path: Path) -> None:
    plan = with_tokenizer(prepare, tmp_path, pair=1)
    assert [name for name, _, _ in tensors(plan, "input")] == ["text", "text_pair"]


@pytest.mark.parametrize(
    ("line", "values", "words"),
    [
        ('output { name: "tokens" data_type: TYPE_INT64 dims: [ -1 ] }', {}, "output 'tokens', expected input_ids, "),
        ('output { name: "input_ids" data_type: TYPE_FP32 dims: [ -1 ] }', {}, "expected TYPE_INT64 or TYPE_INT32"),
        ('input { name: "text" data_type: TYPE_FP32 dims: [ 1 ] }', {}, "expected TYPE_STRING"),
        ("", {"padding": "max_length"}, "fills up to 'max_length', which is not given"),
        ("", {"max_length": 0}, "parameter 'max_length' of model 'm' must be an integer from 1 to 65536, got '0'"),
        ("", {"max_lenght": 8}, "parameter 'max_lenght' of model 'm' is unknown"),
    ],
)
def test_a_tokenizer_refuses_what_it_cannot_do(
    prepare: Prepare, tmp_path: Path, line: str, values: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        with_tokenizer(prepare, tmp_path, line, **values)


def test_a_tokenizer_without_its_file_is_refused(prepare: Prepare) -> None:
    with pytest.raises(ConfigError, match=r"failed to stat file .*tokenizer\.json"):
        prepare("tokenizer")


def test_a_detokenizer_needs_its_file_alone(prepare: Prepare, tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "tokenizer.json").write_text("{}")
    plan = prepare("detokenizer")
    assert step(plan)["special_tokens"] is False
    assert (tensors(plan, "input"), tensors(plan, "output")) == ([("ids", "INT64", [-1])], [("text", "BYTES", [1])])

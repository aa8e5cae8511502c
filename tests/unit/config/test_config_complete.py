from __future__ import annotations

from typing import Any

import pytest
from alipes.config.complete import complete_from_signature, rows_within, wants_proof
from alipes.config.datatypes import v2_name
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError
from alipes.row_proof import RowProof
from alipes.signature import Port, Signature

BATCHES = Signature((Port("X", "FP32", (-1, 2)),), (Port("Y", "INT64", (-1, 3, -1)),))
FIXED = Signature((Port("X", "BYTES", (3, 2)),), (Port("Y", "FP32", (-1,)),))
SCALARS = Signature((Port("X", "FP32", (-1,)),), (Port("Y", "FP32", (-1,)),))
WHOLE = Signature((Port("X", "FP32", ()),), (Port("Y", "FP32", ()),))

Y = 'output { name: "Y" data_type: TYPE_FP32 dims: [ 9 ] }'
X = 'input { name: "X" data_type: TYPE_FP32 dims: [ 9 ] }'


def completed(text: str, signature: Signature, default: int = 4) -> Any:
    config = parse_pbtxt(f'name: "m" {text}')
    complete_from_signature(config, signature, default)
    return config


def tensors(side: Any) -> list[tuple[str, str, list[int]]]:
    return [(tensor.name, v2_name(tensor.data_type), list(tensor.dims)) for tensor in side]


def test_a_file_that_allows_batches_gets_them_and_the_dynamic_batcher() -> None:
    config = completed("", BATCHES)
    assert config.max_batch_size == 4
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert tensors(config.input) == [("X", "FP32", [2])]
    assert tensors(config.output) == [("Y", "INT64", [3, -1])]


def test_the_default_size_is_the_servers() -> None:
    assert completed("", BATCHES, default=16).max_batch_size == 16


@pytest.mark.parametrize("default", [0, 1])
def test_no_batches_need_no_batcher(default: int) -> None:
    config = completed("", BATCHES, default)
    assert config.max_batch_size == default
    assert config.WhichOneof("scheduling_choice") is None
    assert tensors(config.input) == [("X", "FP32", [2] if default else [-1, 2])]


def test_the_default_wait_goes_to_batches_that_completion_adds() -> None:
    def wait(text: str, signature: Signature = BATCHES) -> int:
        config = parse_pbtxt(f'name: "m" {text}')
        complete_from_signature(config, signature, 4, None, 7000)
        return int(config.dynamic_batching.max_queue_delay_microseconds)

    assert (wait(""), wait("max_batch_size: 8")) == (7000, 7000)
    assert (wait("dynamic_batching { }"), wait("", FIXED)) == (0, 0)


def test_what_is_written_stays() -> None:
    config = completed("max_batch_size: 2 sequence_batching { }", BATCHES)
    assert config.max_batch_size == 2
    assert config.WhichOneof("scheduling_choice") == "sequence_batching"


@pytest.mark.parametrize(("text", "inputs", "outputs"), [(X, [9], [3, -1]), (Y, [2], [9])])
def test_the_missing_side_is_filled(text: str, inputs: list[int], outputs: list[int]) -> None:
    config = completed(text, BATCHES)
    assert list(config.input[0].dims) == inputs
    assert list(config.output[0].dims) == outputs
    assert config.HasField("dynamic_batching")


def test_nothing_happens_where_both_sides_are_listed() -> None:
    config = completed(X + Y, BATCHES)
    assert config == parse_pbtxt(f'name: "m" {X} {Y}')


def test_a_file_without_batch_dimension_gets_none() -> None:
    config = completed("", FIXED)
    assert config.max_batch_size == 0
    assert tensors(config.input) == [("X", "BYTES", [3, 2])]
    assert not config.HasField("dynamic_batching")


def test_batches_that_the_file_does_not_allow_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        completed("max_batch_size: 3", FIXED)
    assert str(caught.value) == (
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
    )


def test_a_scalar_is_one_element_on_the_wire() -> None:
    tensor = completed("", SCALARS).input[0]
    assert (list(tensor.dims), tensor.HasField("reshape"), list(tensor.reshape.shape)) == ([1], True, [])
    tensor = completed("", WHOLE).input[0]
    assert (list(tensor.dims), tensor.HasField("reshape")) == ([1], False)


REFUTED = RowProof("refuted", "output 'Y' of a row depends on the rows beside it")


def noticed(text: str, proof: RowProof | None = REFUTED) -> tuple[Any, str]:
    config = parse_pbtxt(f'name: "m" {text}')
    notice = complete_from_signature(config, BATCHES, 4, proof)
    return config, notice


def test_rows_that_depend_on_each_other_are_no_batch() -> None:
    config, notice = noticed("")
    assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (0, None)
    assert tensors(config.input) == [("X", "FP32", [-1, 2])]
    assert notice == (
        "model 'm': it is served without batching, for output 'Y' of a row depends on the rows beside it; to decide it "
        "yourself, write max_batch_size (0 for none), dynamic_batching, and input and output with their dims into "
        "config.pbtxt"
    )


@pytest.mark.parametrize(("text", "rows"), [("max_batch_size: 8", 8), (X, 4)])
def test_a_configuration_of_axis_0_stays_and_requests_run_apart(text: str, rows: int) -> None:
    config, notice = noticed(text)
    assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (rows, None)
    assert notice.startswith("model 'm': its requests are not run together, for output 'Y'")


def test_rows_that_are_independent_are_run_together_without_a_word() -> None:
    config, notice = noticed("", RowProof("proved"))
    assert (config.max_batch_size, notice) == (4, "")
    assert config.HasField("dynamic_batching")


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("", True),
        ("max_batch_size: 8", True),
        ("sequence_batching { }", True),
        ("max_batch_size: 1", False),
        ("dynamic_batching { }", False),
        ("max_batch_size: 8 sequence_batching { }", False),
        (X + Y, False),
    ],
)
def test_what_a_person_wrote_is_not_questioned(text: str, wants: bool) -> None:
    assert wants_proof(parse_pbtxt(f'name: "m" {text}'), 4) is wants


@pytest.mark.parametrize("default", [0, 1])
def test_without_batches_there_is_nothing_to_prove(default: int) -> None:
    assert not wants_proof(parse_pbtxt('name: "m"'), default)


@pytest.mark.parametrize(
    ("port", "rows"),
    [
        (Port("X", "FP32", (-1, 4)), 1024),
        (Port("X", "FP32", (-1, -1)), 1024),
        (Port("X", "FP32", (-1, 3, 224, 224)), 27),
        (Port("X", "FP64", (-1, 3, 4000, 4000)), 4),
        (Port("X", "BYTES", (-1, 1)), 1024),
    ],
)
def test_large_rows_make_smaller_batches(port: Port, rows: int) -> None:
    signature = Signature((port,), (Port("Y", "FP32", (-1,)),))
    assert rows_within(signature, 1024, 16 << 20) == rows
    assert rows_within(signature, 1024, 0) == 1024
    assert rows_within(signature, 2, 16 << 20) == 2

from __future__ import annotations

import pytest
from alipes.config.compare import check_signature
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError
from alipes.signature import Port, Signature

FILE = Signature((Port("X", "FP32", (-1, 2)),), (Port("Y", "FP32", (-1, -1)), Port("Z", "INT32", (-1,))))


def check(text: str, signature: Signature = FILE) -> None:
    check_signature(parse_pbtxt(f'name: "m" {text}'), signature)


def x(data_type: str = "TYPE_FP32", dims: str = "2", more: str = "") -> str:
    return f'input {{ name: "X" data_type: {data_type} dims: [ {dims} ] {more} }}'


@pytest.mark.parametrize(
    "text",
    [
        "max_batch_size: 4 " + x(),
        x(dims="-1, 2"),
        x(dims="7, 2"),
        "max_batch_size: 4 " + x(dims="1, 2", more="reshape { shape: [ 2 ] }"),
        "max_batch_size: 4 " + x() + 'output { name: "Y" data_type: TYPE_FP32 dims: [ 5 ] }',
        "max_batch_size: 4 " + x() + 'output { name: "Z" data_type: TYPE_INT32 dims: [ 1 ] reshape { } }',
    ],
)
def test_what_fits_is_accepted(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unable to load model 'm', configuration expects 0 inputs, model provides 1"),
        (x() * 2, "unable to load model 'm', configuration expects 2 inputs, model provides 1"),
        (
            'input { name: "Q" data_type: TYPE_FP32 dims: [ 2 ] }',
            "unexpected inference input 'Q', allowed inputs are: X",
        ),
        (
            x(dims="-1, 2") + 'output { name: "Q" data_type: TYPE_FP32 dims: [ 2 ] }',
            "unexpected inference output 'Q', allowed outputs are: Y, Z",
        ),
        (
            x("TYPE_INT32"),
            "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'X', model provides "
            "TYPE_FP32",
        ),
        (
            "max_batch_size: 4 " + x(dims="3"),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration "
            "specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
            "tensor shape, making complete shape [-1,3])",
        ),
        (
            "max_batch_size: 4 " + x(dims="2, 1"),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration "
            "specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
            "tensor shape, making complete shape [-1,2,1])",
        ),
        (
            x(dims="2"),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration "
            "specifies 1 dimensions (shape [2])",
        ),
        (
            x(dims="-1, -1"),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration "
            "specifies 2 dimensions (shape [-1,-1])",
        ),
    ],
)
def test_a_difference_is_reported_in_tritons_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(text)
    assert str(caught.value) == message


def test_batches_need_a_batch_dimension() -> None:
    fixed = Signature((Port("X", "FP32", (3, 2)),), ())
    with pytest.raises(ConfigError) as caught:
        check("max_batch_size: 4 " + x(), fixed)
    assert str(caught.value) == (
        "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the "
        "first dimension must be -1; but shape expected by the model is [3,2]"
    )


def test_a_scalar_of_the_file_is_one_element() -> None:
    scalar = Signature((Port("X", "FP32", ()),), ())
    check(x(dims="1"), scalar)
    check(x(dims="1, 1"), scalar)
    check("max_batch_size: 4 " + x(dims="1"), scalar)
    with pytest.raises(ConfigError) as caught:
        check(x(dims="2"), scalar)
    assert str(caught.value) == (
        "unable to load model 'm', scalar tensor 'X', should only provide 1 in the model configuration when the model "
        "doesn't support batching. Model configuration provided: [2]."
    )


def test_the_answer_of_the_extension_module_is_read() -> None:
    text = '{"inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 2]}], "outputs": []}'
    assert Signature.from_json(text) == Signature((Port("X", "FP32", (-1, 2)),), ())


def sequence(*controls: str, batch: int = 4) -> str:
    inputs = ", ".join(controls)
    return f"max_batch_size: {batch} {x()} sequence_batching {{ control_input [ {inputs} ] }}"


START = '{ name: "S" control { int32_false_true: [ 0, 1 ] } }'
READINESS = '{ name: "R" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }'
ID = '{ name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }'
BOTH = (
    '{ name: "S" control [ { int32_false_true: [ 0, 1 ] }, '
    "{ kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }"
)


def with_controls(*ports: Port) -> Signature:
    return Signature((Port("X", "FP32", (-1, 2)), *ports), ())


def test_controls_of_sequences_are_inputs_of_the_file() -> None:
    ports = (Port("S", "INT32", (-1, 1)), Port("R", "FP32", (-1, 1)), Port("C", "BYTES", (-1, 1)))
    check(sequence(ID, START, READINESS), with_controls(*ports))


@pytest.mark.parametrize(
    ("text", "port", "reason"),
    [
        (
            sequence(READINESS, START),
            Port("R", "FP32", (-1, 1)),
            "Internal: configuration specified sequence control 'S', but model does not provide that input",
        ),
        (
            sequence(START),
            Port("S", "INT32", (-1, 2)),
            "Invalid argument: unable to load model 'm', sequence control 'S' in model has dims [2] but dims [1] is "
            "expected",
        ),
        (
            sequence(START),
            Port("S", "INT32", (-1,)),
            "Invalid argument: unable to load model 'm', sequence control 'S' in model has dims [] but dims [1] is "
            "expected",
        ),
        (
            sequence(START),
            Port("S", "FP32", (-1, 1)),
            "Invalid argument: unable to load model 'm', sequence control 'S', the model expects data-type FLOAT but "
            "the model configuration specifies data-type TYPE_INT32",
        ),
        (
            sequence(ID),
            Port("C", "INT64", (-1, 1)),
            "Invalid argument: unable to load model 'm', sequence control 'C', the model expects data-type INT64 but "
            "the model configuration specifies data-type TYPE_STRING",
        ),
        (
            sequence(BOTH),
            Port("S", "INT32", (-1, 1)),
            "Invalid argument: unable to load model 'm', configuration expects 3 inputs, model provides 2",
        ),
    ],
)
def test_a_control_that_differs_is_reported_in_tritons_words(text: str, port: Port, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(text, with_controls(port))
    assert caught.value.reason == reason


def test_an_optional_input_is_none_that_the_file_has_to_have() -> None:
    with pytest.raises(ConfigError, match="configuration expects 0 inputs, model provides 1"):
        check("max_batch_size: 4 " + x(more="optional: true"))

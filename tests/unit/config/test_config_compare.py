from __future__ import annotations

import pytest
from alipes.config.compare import check_signature
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.signature import Port, Signature
from alipes.errors import ConfigError

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
    with pytest.raises(
        ConfigError, match=r"the model expects a scalar but the model configuration specifies shape \[2\]"
    ):
        check(x(dims="2"), scalar)


def test_the_answer_of_the_extension_module_is_read() -> None:
    text = '{"inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 2]}], "outputs": []}'
    assert Signature.from_json(text) == Signature((Port("X", "FP32", (-1, 2)),), ())

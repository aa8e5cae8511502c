"""Rows that the data plane reads and writes are those that the annotations' own reader and writer have, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
from alipes._core import RowReader, row_responses
from alipes.worker.apps.documents import Documents, encode
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from alipes.worker.apps.rows import row_reader
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray


def single(x: NDArray[np.float32]) -> None:
    """An array of any shape."""


def double(x: Annotated[np.ndarray, np.float64, (None, None)]) -> None:
    """An array with one axis."""


def small(x: NDArray[np.int8]) -> None:
    """Integers that are soon out of their range."""


def large(x: Annotated[np.ndarray, np.uint64, (None, 2)]) -> None:
    """Integers without a sign."""


def truths(x: NDArray[np.bool_]) -> None:
    """Truth values."""


def scalars(x: list[float]) -> None:
    """A number for each row."""


def counts(x: list[int]) -> None:
    """An integer for each row."""


def flags(x: list[bool]) -> None:
    """A truth value for each row."""


def texts(x: list[str]) -> None:
    """A text for each row."""


FUNCTIONS: list[Callable[..., None]] = [single, double, small, large, truths, scalars, counts, flags, texts]

NUMBERS = st.one_of(
    st.integers(-300, 300).map(str),
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}"),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["-0", "-0.0", "0e5", "9007199254740993", "16777217", "1e-45", "3.4028236e38", "1E5"]),
)
ODD = st.sampled_from(
    ["null", "true", "false", "NaN", "Infinity", "-", "01", "1.", ".5", "+1", '"1"', '"a\\u0041"', '"caf\u00e9"', "{}"]
)
VALUES = st.recursive(
    st.one_of(NUMBERS, ODD),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        inner.flatmap(lambda item: st.integers(1, 3).map(lambda count: f"[{','.join([item] * count)}]")),
    ),
    max_leaves=12,
)
REGULAR = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=9).map(
    lambda rows: "[" + ",".join(f"[{','.join(row)}]" for row in rows) + "]"
)
TEXTS = st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False))
DOCUMENTS = st.one_of(
    st.one_of(
        VALUES, REGULAR, TEXTS, st.lists(NUMBERS, min_size=1, max_size=20).map(lambda row: f"[{','.join(row)}]")
    ).map(lambda value: f'{{"x": {value}}}'),
    st.sampled_from(["", "{}", "[]", '{"y": 1}', '{"x": 1, "x": 2}', '{"x": 1} 2', '{"\\u0078": 1}', '{"x": 1,}']),
)


def readers(function: Callable[..., None]) -> tuple[Documents, RowReader]:
    plan = plan_of(function, Options(name="m", max_batch_size=8))
    reader = row_reader(plan)
    assert reader is not None
    return Documents(plan, "m"), reader


PAIRS = {function.__name__: readers(function) for function in FUNCTIONS}


def same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, np.ndarray):
        return bool(
            got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == np.asarray(wanted).tobytes()
        )
    return type(got) is type(wanted) and repr(got) == repr(wanted)  # -0.0 is not 0.0


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=400)
@given(body=DOCUMENTS)
@example(body='{"x": [-0, 1.5]}')
@example(body='{"x": [16777217, 9007199254740993, 0.1]}')
@example(body='{"x": [127, -128, 128]}')
@example(body='{"x": [true, 1]}')
def test_what_is_read_here_is_what_the_annotations_read(name: str, body: str) -> None:
    documents, reader = PAIRS[name]
    read = reader.read([body.encode()])
    if not read:
        return
    ((positions, arguments),) = read
    assert positions == [0]
    try:
        wanted = documents.read(body.encode())
    except Misfit as error:
        pytest.fail(f"{body} was read, and is wrong: {error}")
    assert list(arguments) == ["x"]
    assert same(arguments["x"][0], wanted["x"])


USUAL = {
    "single": ["[1, 2.5, -3e2]", "[[1, 2], [3, 4.25]]", "7", "[0.1]"],
    "double": ["[1, 2.5]", "[-0.0]", "[12345678.125, 1e-300]"],
    "small": ["[127, -128]", "[[1], [2]]"],
    "large": ["[1, 2]", "[9223372036854775807, 0]"],
    "truths": ["[true, false]", "true"],
    "scalars": ["1", "2.5", "-1e3"],
    "counts": ["1", "-9223372036854775808"],
    "flags": ["true", "false"],
    "texts": ['"a"', '""', '"caf\u00e9"'],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in USUAL.items() for value in values])
def test_what_is_usual_is_read_here(name: str, value: str) -> None:
    assert PAIRS[name][1].read([f'{{"x": {value}}}'.encode()])


def test_rows_of_one_shape_are_one_call() -> None:
    reader = PAIRS["single"][1]
    bodies = [b'{"x": [1, 2]}', b'{"x": [3]}', b"no JSON", b'{"x": [4, 5]}', b'{"x": "6"}']
    (pairs, rows), (alone, row) = reader.read(bodies)
    assert (pairs, alone) == ([0, 3], [1])
    assert rows["x"].tolist() == [[1, 2], [4, 5]] and row["x"].tolist() == [[3]]
    assert rows["x"].flags.writeable and rows["x"].flags.owndata


def test_texts_and_numbers_are_lists_with_an_item_for_each() -> None:
    def function(text: list[str], number: list[int], x: NDArray[np.float64]) -> None:
        """Takes several."""

    reader = readers(function)[1]
    bodies = [json.dumps({"text": f"t{at}", "number": at, "x": [at]}).encode() for at in range(3)]
    assert reader.read([*bodies, b'{"text": "a", "number": 1}'])[0][0] == [0, 1, 2]
    arguments = reader.read(bodies)[0][1]
    assert arguments["text"] == ["t0", "t1", "t2"] and arguments["number"] == [0, 1, 2]
    assert arguments["x"].tolist() == [[0], [1], [2]]


def test_arguments_that_nothing_here_reads_have_no_reader() -> None:
    def half(x: NDArray[np.float16]) -> None:
        """16 bits."""

    def unknown(x: np.ndarray) -> None:
        """Any type."""

    def nested(x: NDArray[np.float32], rows: list[dict[str, int]]) -> None:
        """An object for each row."""

    def words(x: NDArray[np.str_]) -> None:
        """Texts in an array."""

    def foreign(x: Annotated[np.ndarray, ">f4", (None, 2)]) -> None:
        """Another byte order."""

    for function in (half, unknown, nested, words, foreign):
        assert row_reader(plan_of(function, Options(name="m", max_batch_size=8))) is None


ELEMENTS = {
    np.float64: st.floats(),
    np.float32: st.floats(width=32),
    np.int64: st.integers(-(2**63), 2**63 - 1),
    np.uint64: st.integers(0, 2**64 - 1),
    np.int8: st.integers(-128, 127),
    np.uint16: st.integers(0, 2**16 - 1),
    np.bool_: st.booleans(),
}


@pytest.mark.parametrize("dtype", ELEMENTS, ids=lambda dtype: dtype.__name__)
@settings(max_examples=150)
@given(data=st.data())
def test_what_is_written_here_is_what_the_encoder_writes(dtype: Any, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda sizes: sizes[0] > 0))
    count = int(np.prod(shape))
    items = data.draw(st.lists(ELEMENTS[dtype], min_size=count, max_size=count))
    array = np.array(items, dtype).reshape(shape)
    responses = row_responses(array, len(array))
    assert responses is not None
    bodies = [response.output_tensors()[0].as_numpy()[0] for response in responses]
    assert bodies == [encode(row) for row in array]


@pytest.mark.parametrize(
    "result",
    [
        [1.0, 2.0],
        np.zeros((3, 1)),
        np.float64(1.0),
        np.zeros(2, np.float16),
        np.array(["a", "b"]),
        np.array([None, 1], object),
        np.zeros((2, 2), np.complex64),
        np.zeros((2, 4))[:, ::2],
        np.zeros(2, ">f4"),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.zeros((0, 2)),
    ],
    ids=repr,
)
def test_a_result_that_nothing_here_writes_is_left_to_others(result: Any) -> None:
    assert row_responses(result, 2) is None

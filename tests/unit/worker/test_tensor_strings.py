"""`Tensor` over arrays of strings."""

from __future__ import annotations

import numpy as np
import pytest
from alipes._core import Tensor, TritonModelException

BYTES = 13


@pytest.mark.parametrize("kind", ["object", "S4"])
def test_strings_are_of_datatype_bytes(kind: str) -> None:
    tensor = Tensor("S", np.array([[b"a", b"bc"]], dtype=kind))
    assert tensor.triton_dtype() == BYTES
    assert tensor.shape() == [1, 2]


def test_the_array_comes_back_unchanged() -> None:
    array = np.array(["a", b"b", 3], dtype=object)
    assert Tensor("S", array).as_numpy() is array


def test_an_array_that_does_not_lie_in_order_is_put_in_order() -> None:
    array = np.array([["a", "b"], ["c", "d"]], dtype=object).T
    assert Tensor("S", array).as_numpy().tolist() == [["a", "c"], ["b", "d"]]


def test_an_object_whose_text_cannot_be_had_raises_its_own_error() -> None:
    class Silent:
        def __str__(self) -> str:
            raise LookupError("no text")

    with pytest.raises(LookupError, match="no text"):
        Tensor("S", np.array([Silent()], dtype=object))


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        Tensor("S", np.array(["\ud800"], dtype=object))


def test_an_array_that_shrinks_while_it_is_read_is_refused() -> None:
    class Shrinking:
        def __str__(self) -> str:
            array.resize(1, refcheck=False)
            return "x"

    array = np.array([Shrinking(), Shrinking()], dtype=object)
    with pytest.raises(TritonModelException, match="changed while"):
        Tensor("S", array)

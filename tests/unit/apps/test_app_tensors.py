"""What a function returns, as tensors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from alipes.worker.apps.tensors import tensors_of
from numpy.typing import NDArray


def sent(annotation: Any, value: Any) -> Any:
    def function(x: int) -> Any: ...

    function.__annotations__["return"] = annotation
    (tensor,) = tensors_of(value, plan_of(function, Options(name="m")))
    return tensor.as_numpy()


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (NDArray[np.int8], [1, 128], "INT8: 128 at [1] does not fit int8"),
        (NDArray[np.uint8], np.array([[-1]]), "UINT8: -1 at [0][0] does not fit uint8"),
        (NDArray[np.int32], [1.5], "INT32: 1.5 at [0] does not fit int32"),
        (np.int32, 2**31, "INT32: 2147483648 does not fit int32"),
        (np.float32, 1e39, "FP32: 1e+39 does not fit float32"),
    ],
)
def test_results_that_do_not_fit_are_errors_with_their_place(annotation: Any, value: Any, place: str) -> None:
    with pytest.raises(TypeError, match=re.escape(place)):
        sent(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (NDArray[np.int8], [-128, 127.0], np.array([-128, 127], np.int8)),
        (NDArray[np.uint8], np.array([255]), np.array([255], np.uint8)),
        (np.float32, float("inf"), np.array([np.inf], np.float32)),
        (NDArray[np.float32], [0.1], np.array([0.1], np.float32)),
    ],
)
def test_results_that_fit_are_the_numbers_that_they_were(annotation: Any, value: Any, expected: Any) -> None:
    found = sent(annotation, value)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype

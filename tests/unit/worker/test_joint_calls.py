"""One call for several requests: who is joined with whom, and what happens where that does not work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from alipes.worker.frameworks.joint_calls import JointCalls


class Recorded:
    """A model that notes how many rows each call has."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.rows: list[int] = []

    def __call__(self, **arrays: Any) -> Any:
        self.rows.append(len(next(iter(arrays.values()))))
        found = self.function(**arrays)
        return found if isinstance(found, dict) else {"y": found}


def doubled(x: Any) -> Any:
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2


def calls(function: Callable[..., Any], joins: bool = True, **outputs: str) -> tuple[JointCalls, Recorded, list[str]]:
    recorded, warnings = Recorded(function), list[str]()
    return JointCalls(recorded, outputs or {"y": "float32"}, joins, warnings.append), recorded, warnings


def rows(*values: float) -> dict[str, Any]:
    return {"x": np.array(values, np.float32)[:, None]}


def test_requests_of_one_shape_are_one_call_and_get_their_own_rows() -> None:
    joint, recorded, warnings = calls(doubled)
    answers = joint.answers([rows(1), rows(2, 3), rows(4)])
    assert [np.ravel(y).tolist() for (y,) in answers] == [[2], [4, 6], [8]]
    assert (recorded.rows, warnings) == ([4], [])
    assert all(y.flags.c_contiguous and y.dtype == np.float32 for (y,) in answers)


def test_requests_whose_other_sizes_differ_go_in_groups_of_their_own() -> None:
    joint, recorded, _ = calls(doubled)
    wide = [{"x": np.full((count, 3), count, np.float32)} for count in (1, 2)]
    answers = joint.answers([wide[0], rows(1), wide[1], rows(2)])
    assert [y.shape for (y,) in answers] == [(1, 3), (1, 1), (2, 3), (1, 1)]
    assert sorted(recorded.rows) == [2, 3]


def test_a_bad_request_fails_alone() -> None:
    joint, recorded, warnings = calls(doubled)
    answers = joint.answers([rows(1), rows(-1), rows(2)])
    assert isinstance(answers[1], ValueError)
    assert [np.ravel(answers[at]).tolist() for at in (0, 2)] == [[2], [4]]
    assert (recorded.rows, warnings) == ([3, 1, 1, 1], [])
    joint.answers([rows(1), rows(2)])
    assert recorded.rows[4:] == [2]


def test_a_model_that_returns_other_rows_is_called_one_by_one() -> None:
    joint, recorded, warnings = calls(lambda x: x.sum(axis=0, keepdims=True))
    assert [np.ravel(y).tolist() for (y,) in joint.answers([rows(1, 2), rows(3)])] == [[3], [3]]
    assert [np.ravel(y).tolist() for (y,) in joint.answers([rows(1), rows(3)])] == [[1], [3]]
    assert recorded.rows == [3, 2, 1, 1, 1]
    (warning,) = warnings
    assert warning == (
        "the model got 3 rows of 2 requests and returned [1, 1]: from now on it is called once a request"
    )


def test_without_a_batch_axis_each_request_is_a_call() -> None:
    joint, recorded, _ = calls(doubled, joins=False)
    assert [np.ravel(y).tolist() for (y,) in joint.answers([rows(1), rows(2, 3)])] == [[2], [4, 6]]
    assert recorded.rows == [1, 2]


def test_texts_are_joined_too() -> None:
    joint, recorded, _ = calls(lambda text: {"text": np.char.upper(text.astype("S")).astype(object)}, text="object")
    texts = [{"text": np.array([[one]], object)} for one in (b"a", b"bc", b"")]
    assert [y.tolist() for (y,) in joint.answers(texts)] == [[[b"A"]], [[b"BC"]], [[b""]]]
    assert recorded.rows == [3]


def test_requests_that_leave_an_input_out_go_by_themselves() -> None:
    joint, recorded, _ = calls(lambda x, scale=1.0: x * np.mean(scale))
    scaled = {"x": np.ones((1, 1), np.float32), "scale": np.full((1, 1), 3, np.float32)}
    plain = {"x": np.ones((1, 1), np.float32)}
    answers = joint.answers([scaled, plain, scaled, plain])
    assert [np.ravel(y).tolist() for (y,) in answers] == [[3], [1], [3], [1]]
    assert recorded.rows == [2, 2]


def test_several_outputs_come_in_the_order_of_the_configuration() -> None:
    joint, _, _ = calls(lambda x: {"b": -x, "more": x, "a": x}, a="float32", b="float64")
    first, second = joint.answers([rows(1), rows(2)])
    assert [np.ravel(one).tolist() for one in (*first, *second)] == [[1], [-1], [2], [-2]]  # type: ignore[misc]

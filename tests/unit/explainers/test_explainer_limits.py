"""What explanations may take: seconds and calls end the passes, and the answer says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.errors import ConfigError, DeadlineExceeded, Internal, InvalidArgument
from alipes.explainers import Limits, PictureExplainer, TabularExplainer, TextExplainer
from alipes.explainers.limits import LimitReached, Meter
from alipes.explainers.passes import averaged
from alipes.explainers.source import Evaluator, source_of

ROWS = np.arange(20.0).reshape(10, 2)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def sums(rows: Any) -> Any:
    return rows.sum(axis=1)


def test_rows_go_to_the_predictor_in_batches_of_its_size() -> None:
    sizes: list[int] = []

    def counted(rows: Any) -> Any:
        sizes.append(len(rows))
        return rows.sum(axis=1)

    meter = Meter(Limits())
    found = Evaluator(source_of(counted, "", ""), meter, 4)(ROWS)
    assert found.tolist() == ROWS.sum(axis=1, keepdims=True).tolist()
    assert (sizes, meter.calls) == ([4, 4, 2], 3)


@pytest.mark.parametrize("spent", ["seconds", "calls"])
def test_what_is_used_up_ends_the_evaluation(spent: str) -> None:
    clock = Clock()
    meter = Meter(Limits(seconds=2.0, calls=2), clock)

    def slow(rows: Any) -> Any:
        clock.now_s += 1.5 if spent == "seconds" else 0.0
        return rows.sum(axis=1)

    evaluator = Evaluator(source_of(slow, "", ""), meter, 1)
    with pytest.raises(LimitReached):
        evaluator(ROWS)
    assert meter.calls == 2
    text = str(meter.exceeded(0))
    assert f"2 {spent} after 2 calls" in text
    assert f"Limits({spent}=4)" in text


@pytest.mark.parametrize("on_limit", ["approximate", "error"])
def test_passes_that_are_complete_answer_unless_all_are_wanted(on_limit: Any) -> None:
    meter = Meter(Limits(calls=5, passes=3, on_limit=on_limit))

    def one_pass(at: int, number: int) -> Any:
        meter.count_call()
        return np.array([float(at), float(number)])

    if on_limit == "error":
        with pytest.raises(DeadlineExceeded, match="with 2 of 3 passes"):
            averaged(["a", "b"], one_pass, meter)
        return
    found = averaged(["a", "b"], one_pass, meter)
    assert [one.passes for one in found] == [3, 2]
    assert [one.attributions.tolist() for one in found] == [[0.0, 1.0], [1.0, 0.5]]


def test_an_input_without_a_complete_pass_is_an_error() -> None:
    meter = Meter(Limits(calls=1))

    def one_pass(at: int, number: int) -> Any:
        meter.count_call()
        return np.zeros(1)

    with pytest.raises(DeadlineExceeded, match=r"Limits\(calls=2\)"):
        averaged(["a", "b"], one_pass, meter)


@pytest.mark.parametrize(
    "outputs",
    [np.zeros((3,)), np.zeros((10, 2, 2)), np.array(["a"] * 10), np.array(1.0)],
    ids=["3", "3D", "text", "0D"],
)
def test_outputs_that_are_no_numbers_for_each_row_are_refused(outputs: Any) -> None:
    evaluator = Evaluator(source_of(lambda rows: outputs, "", ""), Meter(Limits()))
    with pytest.raises(Internal, match="for each of 10 rows"):
        evaluator(ROWS)


@pytest.mark.parametrize(
    "arguments", [{"seconds": 0}, {"seconds": True}, {"calls": 0}, {"passes": 1.5}, {"on_limit": "stop"}]
)
def test_limits_refuse_what_is_no_limit(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        Limits(**arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TabularExplainer(3, ROWS),  # type: ignore[arg-type]
        lambda: TabularExplainer(sums, [1.0, 2.0]),
        lambda: TabularExplainer(sums, ROWS, columns=["a"]),
        lambda: TabularExplainer(sums, ROWS, output="y"),
        lambda: TabularExplainer(sums, ROWS, seed=-1),
        lambda: TabularExplainer(sums, ROWS, batch_size=0),
        lambda: TabularExplainer(sums, ROWS, target=-1),
        lambda: TextExplainer(sums, separator="("),
        lambda: PictureExplainer(sums, (8, 8)),  # type: ignore[arg-type]
        lambda: PictureExplainer(sums, (8, 8, 1), grid=(9, 1)),
        lambda: PictureExplainer(sums, (8, 8, 1), layout="CWH"),  # type: ignore[arg-type]
    ],
)
def test_an_explainer_refuses_what_it_cannot_use(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


def test_instances_that_do_not_fit_are_refused_before_any_call() -> None:
    def never(rows: Any) -> Any:
        raise AssertionError("nothing should be asked")

    tabular = TabularExplainer(never, ROWS, columns=["a", "b"])
    for instances in ([], [[1.0]], [["x", "y"]], [[1.0, 2.0]] * 1025):
        with pytest.raises(InvalidArgument, match="instances"):
            tabular.explain(instances)
    assert tabular.instance({"b": 2.0, "a": 1.0}) == [1.0, 2.0]
    with pytest.raises(InvalidArgument, match="a, b"):
        tabular.instance({"a": 1.0})
    text = TextExplainer(never)
    for wrong in ([""], [3], ["x" * 200_000]):
        with pytest.raises(InvalidArgument):
            text.explain(wrong)
    picture = PictureExplainer(never, (2, 2, 1), grid=(1, 1))
    for wrong_picture in ([[[1.0]]], [[[["x"]]]]):
        with pytest.raises(InvalidArgument, match=r"\[2, 2, 1\]"):
            picture.explain(wrong_picture)
    for value in ({"b64": 3}, {"b64": "?"}, {"a": 1, "b": 2}):
        with pytest.raises(InvalidArgument):
            picture.instance(value)

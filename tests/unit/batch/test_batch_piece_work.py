"""A piece keeps what can be done and sets aside what cannot, row by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.batch.formats.base import Wanted
from alipes.batch.piece_work import PieceWork, Trouble
from alipes.batch.plan import FORMAT, Plan, Unit
from alipes.batch.rows import ModelRows
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import BatchError, Internal, NotReady

Model = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


class Direct:
    """A model that is called at once; notes the sizes of requests, and how many were under way at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sizes: list[int] = []

    def submit(self, inputs: Mapping[str, Any]) -> Future[Any]:
        self.sizes.append(len(inputs["X"]))
        future: Future[Any] = Future()
        try:
            future.set_result({"Y": self.model(inputs["X"])})
        except Exception as error:
            future.set_exception(error)
        return future

    def cancel(self) -> None:
        pass


def twice_unless_negative(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if (x < 0).any():
        raise Internal("negative")
    return 2 * x


def rows_of(batch: int) -> ModelRows:
    spec = TensorSpec("X", "FP32", (-1, 2) if batch else (2,))
    return ModelRows(
        Signature("m", {"X": spec}, {"Y": spec}, frozenset({"X"})), batch, Wanted({"X": 2}, frozenset({"X"}))
    )


def plan_of(paths: list[Path], form: str = "npz") -> Plan:
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    units = [Unit(number, 0, -1) for number in range(len(files))]
    return Plan(FORMAT, "1", "m", "", form, "", files, units, [0, len(units)], 1, 1)


def saved(folder: Path, arrays: list[Any]) -> list[Path]:
    paths = [folder / f"{number}.npy" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, np.asarray(array, np.float32))
    return paths


def work(plan: Plan, model: Model, batch: int = 4, in_flight: int = 2) -> tuple[Any, Direct]:
    sender = Direct(model)
    return PieceWork(plan, rows_of(batch), sender, in_flight, lambda rows, read: None).do(0), sender


@pytest.mark.parametrize("batch", [0, 1, 3, 4, 64])
def test_rows_of_small_files_share_requests_and_come_back_in_order(tmp_path: Path, batch: int) -> None:
    arrays = [np.arange(2 * count).reshape(-1, 2) + 100 * count for count in (1, 5, 2, 7, 1)]
    plan = plan_of(saved(tmp_path, arrays))
    found, sender = work(plan, lambda x: 2 * x, batch)
    assert np.array_equal(found.columns["Y"], 2 * np.concatenate(arrays))
    assert [unit.rows for unit in found.units] == [1, 5, 2, 7, 1]
    assert not found.set_aside
    if batch > 1:
        assert sender.sizes == [batch] * (16 // batch) + [16 % batch] * (16 % batch > 0)


def test_rows_that_fail_are_set_aside_and_their_neighbours_are_not(tmp_path: Path) -> None:
    arrays = [[[1, 1], [-1, 1], [2, 2]], [[3, 3]], [[-4, 4], [5, 5], [6, 6], [7, 7], [8, -8]]]
    found, _ = work(plan_of(saved(tmp_path, arrays)), twice_unless_negative, batch=16)
    assert found.columns["Y"][:, 0].tolist() == [2, 4, 6, 10, 12, 14]
    assert [(unit.rows, unit.missing) for unit in found.units] == [(3, [1]), (1, []), (5, [0, 4])]
    assert [(one.unit, one.row, one.reason) for one in found.set_aside] == [
        (0, 1, "negative"),
        (2, 0, "negative"),
        (2, 4, "negative"),
    ]
    assert found.rows == 6


def test_files_that_cannot_be_read_are_set_aside_and_the_others_done(tmp_path: Path) -> None:
    paths = saved(tmp_path, [[[1, 1]], [[2, 2]], [[3, 3, 3]], [[4, 4]], [[5, 5]]])
    plan = plan_of(paths)
    paths[1].unlink()
    os.utime(paths[3], ns=(1, 1))
    found, _ = work(plan, lambda x: 2 * x)
    assert found.columns["Y"].tolist() == [[2, 2], [10, 10]]
    assert [(Path(one.file).name, one.row, one.reason) for one in found.set_aside] == [
        ("1.npy", -1, "it cannot be read: No such file or directory"),
        ("2.npy", -1, "'X' has the shape [1, 3], the model takes rows of the shape [2]"),
        ("3.npy", -1, "it was changed after the run was planned"),
    ]


def test_a_model_that_answers_other_rows_is_set_aside(tmp_path: Path) -> None:
    found, _ = work(plan_of(saved(tmp_path, [[[1, 1], [2, 2]]])), lambda x: np.concatenate([x, x]))
    assert found.rows == 0
    assert [one.reason for one in found.set_aside] == ["output 'Y' has the shape [2, 2] for 1 rows"] * 2


def test_a_server_that_cannot_answer_is_trouble_and_sets_nothing_aside(tmp_path: Path) -> None:
    def loading(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        raise NotReady("is loading")

    with pytest.raises(Trouble, match="is loading"):
        work(plan_of(saved(tmp_path, [[[1, 1]]])), loading)


def test_rows_of_different_shapes_need_lines(tmp_path: Path) -> None:
    paths = saved(tmp_path, [[[1, 1]], [[2, 2]]])

    def ragged(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.zeros((1, int(x[0, 0])))

    with pytest.raises(BatchError, match=r"differ in shape.*with form jsonl"):
        work(plan_of(paths), ragged, batch=1)
    found, _ = work(plan_of(paths, "jsonl"), ragged, batch=1)
    assert [len(row) for row in found.columns["Y"]] == [1, 2]


def test_no_more_requests_are_under_way_than_allowed(tmp_path: Path) -> None:
    plan = plan_of(saved(tmp_path, [np.ones((50, 2))]))
    under_way = most = 0

    class Slow(Direct):
        def submit(self, inputs: Mapping[str, Any]) -> Future[Any]:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            answer = super().submit(inputs).result()

            class Late(Future[Any]):
                def result(self, timeout: float | None = None) -> Any:
                    nonlocal under_way
                    under_way -= 1
                    return answer

            return Late()

    PieceWork(plan, rows_of(2), Slow(lambda x: x), 3, lambda rows, read: None).do(0)
    assert most == 3

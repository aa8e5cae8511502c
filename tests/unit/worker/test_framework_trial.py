"""A framework's model that cannot answer one request of zeros is not ready."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from alipes.worker.frameworks.opened import OpenedModel, Opening
from alipes.worker.frameworks.runner import start_runner
from alipes.worker.loading import LoadError

FRAMEWORK = {"program": "a_framework", "extra": "alipes[framework]"}
CONFIG = {
    "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [2]}],
}


class Model(OpenedModel):
    """A model that keeps what it is asked, and refuses some."""

    def __init__(self, refused: tuple[float, ...]) -> None:
        self.runs: list[Any] = []
        self._refused = refused

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.runs.append(inputs["x"].tolist())
        if inputs["x"].flat[0] in self._refused:
            raise ValueError("no kernel for this rank\nand a stack")
        return {"y": inputs["x"]}


def start(monkeypatch: pytest.MonkeyPatch, *refused: float, **config: Any) -> Model:
    """The model of a program after a start."""
    model = Model(refused)
    program = ModuleType("a_framework")
    program.open_model = lambda opening: model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_framework", program)
    start_runner(FRAMEWORK, Opening("m", Path("model.file"), {**CONFIG, **config}))
    return model


def test_a_model_is_tried_once_before_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch).runs == [[[0, 0]]]
    assert start(monkeypatch, max_batch_size=0).runs == [[0, 0]]


def test_a_model_that_answers_nothing_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LoadError) as failure:
        start(monkeypatch, 0, 1)
    assert str(failure.value) == (
        "model 'm' cannot be loaded from 'model.file': it was opened, and answers no request of zeros: ValueError: no "
        'kernel for this rank; if it answers others, the parameter TRIAL_REQUEST with the value "false" serves it '
        "untried"
    )


def test_a_model_that_takes_no_zeros_is_tried_with_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, 0).runs == [[[0, 0]], [[1, 1]]]


def test_a_parameter_leaves_the_trial_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, 0, 1, parameters={"TRIAL_REQUEST": {"string_value": "false"}}).runs == []


@pytest.mark.parametrize(
    "config",
    [
        {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}]},
        {"input": [{"name": "x", "data_type": "TYPE_STRING", "dims": [2]}]},
        {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1 << 30]}]},
    ],
    ids=["an open size", "texts", "more than a load waits for"],
)
def test_inputs_that_nobody_can_choose_are_not_tried(
    monkeypatch: pytest.MonkeyPatch, config: Mapping[str, Any]
) -> None:
    assert start(monkeypatch, 0, 1, **config).runs == []

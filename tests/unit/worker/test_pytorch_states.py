"""Modules of PyTorch that keep a state, and controls and states that are passed to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.worker.loading import LoadError

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import (  # noqa: E402
    Counted,
    Replaced,
    Total,
    Two,
    ports,
    save_exported,
    save_script,
)
from support.torch_programs import (  # noqa: E402
    BATCHED,
    BY_NAME,
    BY_NUMBER,
    BY_PATH,
    WRITTEN,
    Save,
    check_steps,
    opener,
    stepped,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    return opener(tmp_path)


ONE = ports({"x": "FP32 1"}, {"y": "FP32 1"})
TOTAL_FACTORY = """
import torch

class Total(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1, 1)

    def forward(self, x):
        self.total += x
        return self.total
"""


@pytest.mark.parametrize(
    "save",
    [
        save_script(Total()),
        save_script(Total(), torch.ones(1, 1)),
        save_script(Replaced()),
        save_exported(Total(), torch.ones(1, 1), dynamic=False),
        lambda folder: (folder / "model.py").write_text(TOTAL_FACTORY),
    ],
    ids=["scripted", "traced", "replaced", "exported", "factory"],
)
def test_a_module_that_keeps_a_state_has_one_for_each_sequence(opened: Any, save: Save) -> None:
    model = opened(save, ONE)
    assert model.hidden == "the model writes to total"
    states: dict[int, Any] = {}
    answers = []
    for sequence, value in [(1, 4), (2, 4), (1, 1), (2, 2), (1, 3)]:
        found, states[sequence] = model.step({"x": np.full((1, 1), value, "f4")}, states.get(sequence))
        answers.append(found["y"])
    begins = answers[0].item() - 4  # what the tracer has added up before the file was written
    assert [answer.item() - begins for answer in answers] == [4, 4, 5, 6, 8]


@pytest.mark.parametrize(
    "save",
    [
        save_script(Counted()),
        save_script(Counted(), torch.ones(1, 1)),
        save_script(torch.nn.BatchNorm1d(1)),
        save_script(torch.nn.Dropout()),
    ],
    ids=["scripted", "traced", "statistics", "chance"],
)
def test_a_module_that_answers_by_its_inputs_alone_has_no_state(opened: Any, save: Save) -> None:
    assert opened(save, BATCHED + ONE).hidden == ""


@pytest.mark.parametrize(
    ("save", "config"),
    [(WRITTEN, BY_NUMBER), (WRITTEN, BY_NAME), (WRITTEN, BY_PATH), (WRITTEN, BY_PATH.replace("ARGS[2]", "KWARGSx"))],
    ids=["exported-number", "exported-name", "exported-path", "exported-keyword"],
)
def test_controls_and_states_go_where_their_names_say(opened: Any, save: Save, config: str) -> None:
    check_steps(opened(save, config), config)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (stepped("START", "TOTAL__1", "TOTAL__1", "INPUT__2", "OUTPUT__0"), "which argument 'START' is cannot be told"),
        (stepped("START__0", "OLD", "NEW__1", "INPUT__2", "OUTPUT__0"), "which argument 'OLD' is cannot be told"),
        (stepped("start", "total", "RESULT[pair][0]", "x", "RESULT[sum]", "STRING"), "input 'total' is TYPE_STRING"),
    ],
)
def test_controls_and_states_that_cannot_be_passed_are_refused(opened: Any, config: str, words: str) -> None:
    with pytest.raises(LoadError) as failure:
        opened(WRITTEN, config)
    assert words in str(failure.value)


def test_names_that_contradict_their_order_are_refused(opened: Any) -> None:
    with pytest.raises(LoadError, match="which argument 'b' is cannot be told"):
        opened(save_script(Two()), BATCHED + ports({"INPUT__1": "FP32 3", "b": "FP32 3"}, {"y": "FP32 3"}))

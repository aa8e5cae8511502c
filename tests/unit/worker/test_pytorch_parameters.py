"""Parameters of models of PyTorch, and their threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.worker.loading import LoadError

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import (  # noqa: E402
    LINEAR,
)
from support.torch_programs import (  # noqa: E402
    BATCHED,
    ROWS,
    SCRIPT,
    expected,
    opener,
    parameter,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    return opener(tmp_path)


@pytest.mark.parametrize(
    "key",
    [
        "INFERENCE_MODE",
        "DISABLE_OPTIMIZED_EXECUTION",
        "ENABLE_TENSOR_FUSER",
        "ENABLE_JIT_PROFILING",
        "ENABLE_WEIGHT_SHARING",
    ],
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_parameters_leave_the_numbers_as_they_are(opened: Any, key: str, value: str) -> None:
    model = opened(SCRIPT, BATCHED + LINEAR + parameter(key, value))
    for _ in range(3):
        assert np.array_equal(model.run({"INPUT__0": ROWS})["OUTPUT__0"], expected())


def test_threads_are_the_parameters_then_the_instances_share(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    try:
        opened(SCRIPT, BATCHED + LINEAR)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("more", "adapts"),
    [
        ("", True),
        ("INTRA_OP_THREAD_COUNT", False),
        ("NUM_THREADS", False),
    ],
)
def test_executions_differ_in_threads_where_no_parameter_says_how_many(opened: Any, more: str, adapts: bool) -> None:
    before = torch.get_num_threads()
    try:
        model = opened(SCRIPT, BATCHED + LINEAR + (parameter(more, "2") if more else ""))
        assert model.adapts_threads == adapts
        model.set_threads(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("INFERENCE_MODE", "maybe", "INFERENCE_MODE of model 'm' must be true or false, got 'maybe'"),
        ("INTRA_OP_THREAD_COUNT", "none", "INTRA_OP_THREAD_COUNT of model 'm' must be a number"),
        ("TORCH_COMPILE_OPTIONAL_PARAMETERS", "[]", "must be a JSON object with what torch.compile takes"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_named(opened: Any, key: str, value: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        opened(SCRIPT, BATCHED + LINEAR + parameter(key, value))

"""A model that is never done with its requests does not keep another one from its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.models import add_model, times
from support.python_models import add_python_model
from support.server import ServerProcess
from support.traffic import Traffic, answer_of

Serve = Callable[..., ServerProcess]

QUIET_REQUESTS = 100
#: Answers of the flood while the other model is asked, at the least: it is no less served.
FLOOD_ANSWERS = 20

DOUBLES = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request) * 2) for request in requests]
"""


def add(repository: Path, name: str, backend: str) -> None:
    if backend == "onnx":
        add_model(repository, name, times(2.0))
    else:
        add_python_model(repository, name, DOUBLES, signature="X: FP32[2] -> Y: FP32[2]", config="max_batch_size: 8")


@pytest.mark.parametrize("busy", ["onnx", "python"])
@pytest.mark.parametrize("quiet", ["onnx", "python"])
def test_a_flood_on_one_model_lets_another_answer_all_along(
    repository: Path, serve: Serve, busy: str, quiet: str
) -> None:
    add(repository, "busy", busy)
    add(repository, "quiet", quiet)
    # One network thread, which both share.
    server = serve(repository, "--http-thread-count=1")
    with Traffic(server, "busy", callers=12) as flood:
        before = sum(map(len, flood.by_caller))
        answers = [answer_of(server, "quiet") for _ in range(QUIET_REQUESTS)]
        while sum(map(len, flood.by_caller)) < before + FLOOD_ANSWERS and not flood.failures:
            answers.append(answer_of(server, "quiet"))
    assert set(answers) == {2.0}
    assert flood.failures == []

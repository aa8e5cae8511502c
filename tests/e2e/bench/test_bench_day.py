"""A day of the bench, its first second: every model is sent the same requests, and answers each correctly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.server import ServerProcess

from bench.load.day import Groups, Phase, arrivals
from bench.load.day_loop import figures, play
from bench.models import settings
from bench.models.settings import DEFAULT, TUNED

DAY = arrivals(1, (Phase(1, 5.0, even=20), Phase(1, 5.0, groups=Groups(4, 6, 0.005))))


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    return serve(settings.write(tmp_path / "models"), "--model-control-mode=explicit", *_loaded(TUNED, DEFAULT.model))


def _loaded(*models: str) -> list[str]:
    return [f"--load-model={model}" for model in models]


def test_each_model_is_sent_the_whole_day(server: ServerProcess) -> None:
    outcomes = play(server.grpc, [TUNED, DEFAULT.model], DAY)
    assert list(outcomes) == [TUNED, DEFAULT.model]
    for outcome in outcomes.values():
        seen = figures(DAY, outcome, 1e9)
        assert (seen["answered"], seen["kept"], seen["stretches"]) == (44, 1, 1)
        assert outcome.checked > 0
        # No batch takes less time than its longest text.
        assert (outcome.latencies_ms > DAY.texts_ms).all()
        assert outcome.seconds >= np.ptp(DAY.moments_s)


def test_a_model_that_refuses_ends_the_day(server: ServerProcess) -> None:
    day = arrivals(1, (Phase(1, -50.0, even=20),))
    with pytest.raises(SystemExit, match=f"{TUNED}: .*sleep length must be non-negative"):
        play(server.grpc, [TUNED], day)

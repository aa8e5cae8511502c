"""An ONNX model whose load takes for ever: nothing can end it, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.endpoints import HttpEndpoint, Refusal
from support.models import add_model, endless_to_load
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
LATE = "the load took longer than the 5 s that --model-load-timeout-secs allows"


@pytest.mark.slow("loads a model in vain until its time is up")
def test_a_model_that_loads_for_ever_gives_its_thread_back(repository: Path, serve: Serve) -> None:
    add_model(repository, "endless", endless_to_load())
    add_model(repository, "quick")
    server = serve(
        repository,
        "--model-control-mode=explicit",
        "--model-load-thread-count=1",
        "--model-load-timeout-secs=5",
    )
    with HttpEndpoint(server) as one, HttpEndpoint(server) as other, ThreadPoolExecutor(1) as pool:
        failed = pool.submit(_failure, one, "endless")
        other.load("quick")
        text = failed.result()
        assert text == (f"load failed for model 'endless': version 1 is at UNAVAILABLE state: Unavailable: {LATE};\n")
        assert other.is_ready("quick")
        server.wait_for_output("'endless' still loads in vain")
    assert server.stop() == 0, "the exit does not wait for it either"


def _failure(endpoint: HttpEndpoint, model: str) -> str:
    with pytest.raises(Refusal) as refusal:
        endpoint.load(model)
    return refusal.value.text

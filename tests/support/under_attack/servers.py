"""Servers that are attacked: alipes and NVIDIA's, each with default flags and the same models in Python."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from support.python_models import add_python_model
from support.real_triton import RealTriton
from support.server import ServerProcess
from support.under_attack.target import Target

# Of the client that behaves well, and of the attackers: who waits for another's request in a model does not wait for
# the server.
MODELS: Final = ("double", "large")
_TWICE: Final = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request) * np.float32(2)) for request in requests]
"""

Start = Callable[[], contextlib.AbstractContextManager[Target]]


@contextlib.contextmanager
def alipes() -> Iterator[Target]:
    """alipes, as its wheel starts it."""
    with tempfile.TemporaryDirectory() as folder, ServerProcess(_repository(Path(folder))) as server:
        server.wait_until_started()
        yield Target(server.http, server.grpc, server.process.pid)


@contextlib.contextmanager
def triton() -> Iterator[Target]:
    """The real Triton."""
    with tempfile.TemporaryDirectory() as folder, RealTriton(_repository(Path(folder)), Path(folder)) as server:
        yield Target(server.http, server.grpc, server.process.pid)


SERVERS: Final[dict[str, Start]] = {"alipes": alipes, "triton": triton}


def _repository(folder: Path) -> Path:
    repository = folder / "models"
    for model in MODELS:
        add_python_model(repository, model, _TWICE, signature="X: FP32[-1, -1] -> Y: FP32[-1, -1]")
    return repository

"""Tensors of a worker that torch takes over DLPack and frees: torch releases the interpreter's lock before it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import Endpoint
from support.python_models import add_python_model
from support.server import ServerProcess

pytestmark = pytest.mark.extra("torch")

# Hands tensors to torch by either way, and frees them: those of the request, some of its own, and some on a thread.
# The last one is still held when its response is sent.
FREES = """
import torch

def taken(tensor, capsule):
    return torch.utils.dlpack.from_dlpack(tensor.to_dlpack() if capsule else tensor)

def free(array, count):
    for number in range(count):
        t = taken(pb_utils.Tensor("X", array), capsule=number % 2)
        assert t.shape == array.shape
        del t

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X")
            free(x.as_numpy(), 200)
            other = threading.Thread(target=free, args=(np.zeros((3, 5), np.float32), 200))
            other.start()
            free(np.ones(7, np.int64), 200)
            other.join()
            self.last = taken(x, capsule=True)
            y = pb_utils.Tensor.from_dlpack("Y", torch.utils.dlpack.to_dlpack(self.last * 2))
            responses.append(pb_utils.InferenceResponse([y]))
        return responses
"""


@pytest.fixture
def server(repository: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_python_model(repository, "frees", FREES, signature="X: FP32[-1] -> Y: FP32[-1]")
    return serve(repository)


def test_a_worker_answers_on_while_torch_frees_its_tensors(endpoint: Endpoint) -> None:
    for number in range(5):
        sent = np.arange(number + 1, dtype=np.float32)
        assert np.array_equal(endpoint.ask("frees", {"X": sent})["Y"], 2 * sent)

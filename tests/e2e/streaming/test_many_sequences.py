"""Many clients with many sequences each: no state crosses over from one to another.

Short, eight clients with eight sequences; with `ALIPES_SOAK=1` sixty-four with sixty-four, for five minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from alipes import repository as qv
from alipes.client import InferenceClient
from onnx import TensorProto, helper
from support.detectors import wait_long
from support.processes import metric
from support.server import ServerProcess

SOAK_S = 300.0 if os.environ.get("ALIPES_SOAK") else 0.0
CLIENTS, SEQUENCES = (64, 64) if SOAK_S else (8, 8)
ROUNDS = 150
WINDOW = 4


def write_repository(folder: Path) -> None:
    """The ensemble `sums`: the sum of a sequence's last four numbers."""
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["window"], ["sum"], keepdims=0, axes=[2])],
        "sums",
        [helper.make_tensor_value_info("window", TensorProto.FLOAT, ["batch", 1, WINDOW])],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["batch", 1])],
    )
    made = helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", 12)])
    repo = qv.ModelRepository(folder)
    summing = repo.add("summing", platform=qv.Platform.ONNX)
    summing.export_version(made)
    ensemble = repo.add("sums", platform=qv.Platform.ENSEMBLE)
    ensemble.add_streaming_inputs(summing.inputs["window"], stream_size=1, batch_size=1)
    wait_long(repo)
    ensemble.add_output(summing.outputs["sum"])
    ensemble.export_version(None)


class Sums:
    """What each sequence of a client has sent, and the sum that comes back for it."""

    def __init__(self, client: int) -> None:
        self._random = np.random.default_rng(client)
        self._sent: dict[int, list[int]] = {client * 1000 + number + 1: [] for number in range(SEQUENCES)}
        self._expected: dict[int, tuple[int, int]] = {}
        self._ids = iter(range(1 << 40))
        self.checked = 0

    def __call__(self, y: npt.NDArray[np.float32], request_id: int, sequence_id: int) -> None:
        assert self._expected.pop(request_id) == (sequence_id, round(float(y[0, 0])))
        self.checked += 1

    def updates(self, *, last: bool) -> Iterator[tuple[npt.NDArray[np.float32], dict[str, object]]]:
        """One number for each sequence, and what goes with it; now and then a sequence ends, and begins anew."""
        for sequence, sent in self._sent.items():
            number = int(self._random.integers(1 << 20))
            start, end = not sent, last or self._random.random() < 0.02
            sent.append(number)
            request = next(self._ids)
            self._expected[request] = sequence, sum(sent[-WINDOW:])
            if end:
                sent.clear()
            flags = {"sequence_start": start, "sequence_end": end}
            yield np.full((1, 1), number, np.float32), {"request_id": request, "sequence_id": sequence, **flags}

    @property
    def outstanding(self) -> int:
        return len(self._expected)


def run_client(address: str, number: int, until_s: float) -> int:
    """One client, from beginning to end; gives how many sums it has checked."""
    sums, rounds = Sums(number), 0
    with InferenceClient(address, "sums", callback=sums, max_in_flight=SEQUENCES) as client:
        while rounds < ROUNDS or time.monotonic() < until_s:
            rounds += 1
            for x, how in sums.updates(last=False):
                client.infer(x, **how)  # type: ignore[arg-type]
            # An answer that was wrong, or that was none, is raised here.
            client.get()
        for x, how in sums.updates(last=True):
            client.infer(x, **how)  # type: ignore[arg-type]
    assert client.get() is None
    assert sums.outstanding == 0
    assert sums.checked == (rounds + 1) * SEQUENCES
    return sums.checked


@pytest.mark.timeout(900)
def test_no_state_crosses_over(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    write_repository(repository)
    server = serve(repository)
    until_s = time.monotonic() + SOAK_S
    with ThreadPoolExecutor(CLIENTS) as pool:
        checked = list(pool.map(lambda number: run_client(server.grpc, number, until_s), range(CLIENTS)))
    assert min(checked) >= ROUNDS * SEQUENCES
    assert metric(server, "alipes_live_sequences") == 0

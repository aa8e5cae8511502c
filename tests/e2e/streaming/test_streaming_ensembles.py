"""Snapshotter, network and averager as one ensemble: in order, apart, and whatever becomes of other clients."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.sequences import Refused, Samples, SequenceStream, add_chain, add_streaming, halves, means, windows
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, UPDATES = 2, 8, 32, 3

# Answers out of order: every instance sleeps as long as its request says.
UNEVEN = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        window = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
        time.sleep(abs(float(window[0, 0, -1])) % 0.02)
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", window / window.dtype.type(2))])
"""


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    snapshot = {"stride_size": STRIDE, "snapshot_size": LENGTH, "channels": f"w:{CHANNELS}"}
    mean = {"update_size": STRIDE, "num_updates": UPDATES, "kernel_size": LENGTH, "channels": CHANNELS}
    for name, batch in (("one", 1), ("four", 4)):
        add_streaming(repository, f"windows_{name}", "snapshotter", **snapshot, batch_size=batch)
        add_streaming(repository, f"mean_{name}", "averager", **mean, batch_size=batch)
    (repository / "net" / "1").mkdir(parents=True)
    onnx.save(halves(CHANNELS, LENGTH), repository / "net" / "1" / "model.onnx")
    (repository / "net" / "config.pbtxt").write_text(
        "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 300 } instance_group { count: 3 }"
    )
    (repository / "uneven" / "1").mkdir(parents=True)
    (repository / "uneven" / "1" / "model.py").write_text(UNEVEN)
    (repository / "uneven" / "config.pbtxt").write_text(
        f'input {{ name: "X" data_type: TYPE_FP32 dims: [ 1, {CHANNELS}, {LENGTH} ] }} '
        f'output {{ name: "Y" data_type: TYPE_FP32 dims: [ 1, {CHANNELS}, {LENGTH} ] }} instance_group {{ count: 3 }}'
    )
    for ensemble, size, net in (
        ("chain", "one", "net"),
        ("chain_four", "four", "net"),
        ("uneven_chain", "one", "uneven"),
    ):
        batch = 4 if size == "four" else 1
        steps = [
            (f"windows_{size}", "snapshot_update", "w"),
            (net, "X", "Y"),
            (f"mean_{size}", "update", "output_stream"),
        ]
        dims = [1, CHANNELS, STRIDE * batch]
        add_chain(repository, ensemble, steps, dims, dims)
    add_chain(
        repository,
        "outer",
        [("windows_one", "snapshot_update", "w"), ("uneven", "X", "Y"), ("inner", "IN", "OUT")],
        [1, CHANNELS, STRIDE],
        [1, CHANNELS, STRIDE],
    )
    add_chain(
        repository, "inner", [("mean_one", "update", "output_stream")], [1, CHANNELS, LENGTH], [1, CHANNELS, STRIDE]
    )
    return serve_module(repository)


def expected(samples: Samples) -> bytes:
    """What the ensembles make of the samples ``[channels, samples]`` of a sequence."""
    kernels = windows(samples, STRIDE, LENGTH) / np.float32(2)
    return means(kernels, STRIDE, UPDATES).tobytes()


def under_way(server: ServerProcess, ensemble: str) -> int:
    """Requests to an ensemble that are not answered."""
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{ensemble}/explain") as answer:
        return int(json.load(answer)["models"][0]["ensemble"]["requests"])


def noise(seed: int, strides: int) -> Samples:
    return np.random.default_rng(seed).standard_normal((CHANNELS, strides * STRIDE), np.float32)


def send_all(stream: SequenceStream, model: str, samples: Samples, sequence: int, batch: int = 1) -> int:
    """Sends a whole sequence; returns the number of its requests."""
    updates = np.split(samples, samples.shape[1] // (STRIDE * batch), axis=1)
    for number, update in enumerate(updates):
        start, end = number == 0, number == len(updates) - 1
        stream.send(model, "IN", update[None], sequence, start=start, end=end)
    return len(updates)


@pytest.mark.parametrize(("model", "batch"), [("chain", 1), ("chain_four", 4), ("uneven_chain", 1), ("outer", 1)])
def test_order_holds_across_instances(server: ServerProcess, model: str, batch: int) -> None:
    samples = noise(1, 40)
    with SequenceStream(server) as stream:
        count = send_all(stream, model, samples, 5, batch)
        answers = [answer[0] for answer in stream.receive_all(count)]
    assert np.concatenate(answers, axis=1).tobytes() == expected(samples)


def test_a_request_whose_step_fails_holds_up_no_other_of_its_sequence(server: ServerProcess) -> None:
    # A window of no sequence: the request ends at its first step, before those that it stands in front of.
    samples = noise(2, 6)
    with SequenceStream(server) as stream:
        stream.send("uneven_chain", "IN", np.zeros((1, CHANNELS, STRIDE), np.float32), 6)
        count = send_all(stream, "uneven_chain", samples, 6)
        with pytest.raises(Refused, match=r"in ensemble 'uneven_chain', .* must specify the START flag"):
            stream.receive()
        answers = [answer[0] for answer in stream.receive_all(count)]
    assert np.concatenate(answers, axis=1).tobytes() == expected(samples)


def test_two_hundred_streams_stay_separate_while_clients_die(server: ServerProcess) -> None:
    count, killed = 200, threading.Event()

    def steady(number: int) -> bool:
        """A client that stays, for two sequences one after the other under one number."""
        random = np.random.default_rng(number)
        for _ in range(2):
            samples = noise(int(random.integers(1 << 30)), int(random.integers(4, 20)))
            with SequenceStream(server) as stream:
                requests = send_all(stream, "chain", samples, 1000 + number)
                answers = [answer[0] for answer in stream.receive_all(requests)]
            if np.concatenate(answers, axis=1).tobytes() != expected(samples):
                return False
        return True

    def vanishing(number: int) -> None:
        """A client that leaves in the midst of its sequences, again and again."""
        while not killed.is_set():
            with SequenceStream(server) as stream:
                send_all(stream, "chain", noise(number, 30), 1000 + number)
                stream.receive()

    with ThreadPoolExecutor(4) as vandals, ThreadPoolExecutor(16) as pool:
        for number in range(4):
            vandals.submit(vanishing, 200 + number)
        try:
            right = list(pool.map(steady, range(count)))
        finally:
            killed.set()
    assert right == [True] * count
    until(lambda: under_way(server, "chain") == 0)
    # Later clients may use the numbers of clients that have vanished.
    assert [steady(200 + number) for number in range(4)] == [True] * 4

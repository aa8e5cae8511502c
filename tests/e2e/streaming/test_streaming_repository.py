"""An ensemble that a training script has put together, served: the numbers are those of the network by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import repository as qv
from alipes.client import InferenceClient
from support.detectors import wait_long
from support.sequences import Samples, SequenceStream, halves, means, windows
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, UPDATES, REQUESTS = 2, 8, 32, 3, 12
BATCHES = (1, 16)
SLOW_STRIDE = 4


def add_stream(repo: qv.ModelRepository, batch: int) -> None:
    """Windows before the network, in an ensemble, and with means behind it, in another."""
    net = repo.models["net"]
    ensemble = repo.add(f"stream-{batch}", qv.Platform.ENSEMBLE)
    assert isinstance(ensemble, qv.EnsembleModel)
    ensemble.add_streaming_inputs(net.inputs["X"], stream_size=STRIDE, batch_size=batch)
    ensemble.add_output(net.outputs["Y"])
    ensemble.export_version(None)
    averaged = repo.add(f"means-{batch}", qv.Platform.ENSEMBLE)
    assert isinstance(averaged, qv.EnsembleModel)
    averaged.add_streaming_inputs(net.inputs["X"], stream_size=STRIDE, batch_size=batch)
    averaged.add_streaming_output(net.outputs["Y"], update_size=STRIDE, num_updates=UPDATES, batch_size=batch)
    averaged.export_version(None)


def add_unbiased(repo: qv.ModelRepository) -> None:
    """Means whose first ones are those of the predictions that there are."""
    net = repo.models["net"]
    ensemble = repo.add("unbiased", qv.Platform.ENSEMBLE)
    assert isinstance(ensemble, qv.EnsembleModel)
    ensemble.add_streaming_inputs(net.inputs["X"], stream_size=STRIDE)
    ensemble.add_streaming_output(net.outputs["Y"], STRIDE, UPDATES, batch_size=1, unbiased_start=True)
    ensemble.export_version(None)


def add_two_rates(repo: qv.ModelRepository) -> None:
    """Two networks, each with windows of a signal of its own rate."""
    fast, slow = repo.models["net"], repo.models["slow"]
    ensemble = repo.add("two-rates", qv.Platform.ENSEMBLE)
    assert isinstance(ensemble, qv.EnsembleModel)
    ensemble.add_streaming_inputs(fast.inputs["X"], stream_size=STRIDE)
    ensemble.add_streaming_inputs(slow.inputs["X"], stream_size=SLOW_STRIDE, name="slow-windows")
    ensemble.add_output(fast.outputs["Y"], key="fast")
    ensemble.add_output(slow.outputs["Y"], key="slow")
    ensemble.export_version(None)


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    folder: Path = tmp_path_factory.mktemp("models")
    repo = qv.ModelRepository(folder)
    repo.add("net", qv.Platform.ONNX).export_version(halves(CHANNELS, LENGTH))
    repo.add("slow", qv.Platform.ONNX).export_version(halves(1, LENGTH))
    for batch in BATCHES:
        add_stream(repo, batch)
    add_unbiased(repo)
    add_two_rates(repo)
    wait_long(repo)
    return serve_module(folder)


def updates(signal: Samples, size: int) -> list[Samples]:
    return [signal[None, :, at : at + size] for at in range(0, signal.shape[1], size)]


def ask_one_by_one(server: ServerProcess, kernels: Samples) -> Samples:
    """What the network gives for each window by itself."""
    with SequenceStream(server) as stream:
        for kernel in kernels:
            stream.send("net", "X", kernel[None], 0)
        return np.concatenate(list(stream.receive_all(len(kernels))))


@pytest.mark.parametrize("batch", BATCHES)
def test_a_streaming_ensemble_gives_the_bits_of_the_plain_network(server: ServerProcess, batch: int) -> None:
    signal = np.random.default_rng(batch).standard_normal((CHANNELS, REQUESTS * batch * STRIDE), np.float32)
    with SequenceStream(server) as stream:
        for at, update in enumerate(updates(signal, batch * STRIDE)):
            stream.send(f"stream-{batch}", "snapshot_update", update, 1001, start=at == 0, end=at == REQUESTS - 1)
        found = np.concatenate(list(stream.receive_all(REQUESTS)))
    warm_up = LENGTH // STRIDE - 1
    starts = range(0, signal.shape[1] - LENGTH + 1, STRIDE)
    plain = np.stack([signal[:, start : start + LENGTH] for start in starts])
    assert found[warm_up:].tobytes() == ask_one_by_one(server, plain).tobytes()


@pytest.mark.parametrize("batch", BATCHES)
def test_averaged_streams_give_the_bits_of_what_is_averaged_offline(server: ServerProcess, batch: int) -> None:
    count = 3
    signals = np.random.default_rng(batch).standard_normal((count, CHANNELS, REQUESTS * batch * STRIDE), np.float32)
    with SequenceStream(server) as stream:
        for at in range(REQUESTS):
            for sequence, signal in enumerate(signals):
                update = updates(signal, batch * STRIDE)[at]
                flags = {"start": at == 0, "end": at == REQUESTS - 1}
                stream.send(f"means-{batch}", "snapshot_update", update, sequence + 1, **flags)
        answers = list(stream.receive_all(REQUESTS * count))
    for sequence, signal in enumerate(signals):
        found = np.concatenate([answer[0] for answer in answers[sequence::count]], axis=1)
        kernels = windows(signal, STRIDE, LENGTH) / np.float32(2)
        assert found.tobytes() == means(kernels, STRIDE, UPDATES).tobytes()


def test_signals_of_two_rates_stream_side_by_side(server: ServerProcess) -> None:
    noise = np.random.default_rng(7)
    fast = noise.standard_normal((CHANNELS, REQUESTS * STRIDE), np.float32)
    slow = noise.standard_normal((1, REQUESTS * SLOW_STRIDE), np.float32)
    pairs = zip(updates(fast, STRIDE), updates(slow, SLOW_STRIDE), strict=True)
    with InferenceClient(server.grpc, "two-rates") as client:
        found = list(client.stream([{"net/X": one, "slow/X": other} for one, other in pairs]))
    assert np.concatenate([one["fast"] for one in found]).tobytes() == halved(fast, STRIDE)
    assert np.concatenate([one["slow"] for one in found]).tobytes() == halved(slow, SLOW_STRIDE)


def halved(signal: Samples, stride: int) -> bytes:
    """What the network makes of the windows of a signal."""
    return (windows(signal, stride, LENGTH) / np.float32(2)).tobytes()


@pytest.mark.parametrize("model", [*(f"means-{batch}" for batch in BATCHES), "unbiased"])
def test_a_stream_divided_among_sequences_gives_the_bits_of_one(server: ServerProcess, model: str) -> None:
    batch = 16 if model == "means-16" else 1
    signal = np.random.default_rng(8).standard_normal((CHANNELS, 3 * REQUESTS * batch * STRIDE), np.float32)
    with InferenceClient(server.grpc, model) as client:
        found = np.concatenate([one[0] for one in client.stream(signal, sequences=3)], axis=1)
    kernels = windows(signal, STRIDE, LENGTH) / np.float32(2)
    assert found.tobytes() == means(kernels, STRIDE, UPDATES, unbiased=model == "unbiased").tobytes()

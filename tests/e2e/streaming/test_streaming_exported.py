"""Streaming models exported with PyTorch: served, run as scripts and the server's own, all of them the same bits."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client, streaming
from alipes import repository as qv
from alipes.client import InferenceClient
from alipes.errors import ConfigError, ExportError
from support.sequences import Samples, SequenceStream, halves, means, windows
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="exports of PyTorch models need PyTorch")

# The first test waits for three dozen exports, each of which is traced, written and run.
pytestmark = [pytest.mark.extra("torch"), pytest.mark.timeout(600)]

Serve = Callable[..., ServerProcess]
REQUESTS, SEQUENCES = 9, 3

# Channels of each input, stride, samples of a window, windows of a request. Strides shorter than a window, with and
# without a common divisor, as long as it, and longer.
WINDOWS = {
    "one": ((2,), 2, 8, 1),
    "many": ((2,), 2, 8, 16),
    "odd": ((2, 0, 1), 3, 8, 4),
    "whole": ((1,), 8, 8, 3),
    "gaps": ((2,), 11, 8, 2),
}
# Samples of an update, predictions of a mean, samples of a prediction, predictions of a request, channels, and whether
# the first means are those of the predictions that there are.
MEANS = {
    "one": (2, 3, 7, 1, 2, False),
    "many": (2, 3, 8, 16, 2, False),
    "flat": (3, 5, 15, 4, 0, False),
    "plain": (4, 1, 4, 2, 1, False),
    "unbiased": (2, 5, 11, 1, 2, True),
    "unbiased-many": (2, 7, 14, 3, 0, True),
}

SERVED = ("odd", "unbiased")
"""Cases whose scripts are served, too."""


def exposed(repo: qv.ModelRepository, name: str, shape: Sequence[int | None]) -> qv.ExposedTensor:
    """An input of a model that is there for the sake of its shape."""
    model = repo.add(name, qv.Platform.ONNX)
    model.config.add_input("x", shape)
    return model.inputs["x"]


def add_windows(repo: qv.ModelRepository, case: str) -> dict[str, qv.Model]:
    channels, stride, length, batch = WINDOWS[case]
    shapes = [(None, one, length) if one else (None, length) for one in channels]
    inputs = [exposed(repo, f"windows-{case}-{at}", shape) for at, shape in enumerate(shapes)]
    return {
        kind.name: streaming.make_streaming_input_model(
            repo, inputs, stride, batch, f"windows-{case}-{kind.name}", SEQUENCES, platform=kind
        )
        for kind in (qv.Platform.SNAPSHOTTER, qv.Platform.ONNX, qv.Platform.TORCHSCRIPT)
    }


def add_means(repo: qv.ModelRepository, case: str) -> dict[str, qv.Model]:
    update, updates, kernel, batch, channels, unbiased = MEANS[case]
    output = exposed(repo, f"means-{case}", (None, channels, kernel) if channels else (None, kernel))
    return {
        kind.name: streaming.make_streaming_output_model(
            repo,
            output,
            update,
            updates,
            batch,
            f"means-{case}-{kind.name}",
            SEQUENCES,
            platform=kind,
            unbiased_start=unbiased,
        )
        for kind in (qv.Platform.AVERAGER, qv.Platform.ONNX, qv.Platform.TORCHSCRIPT)
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models")
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, dict[str, qv.Model]]:
    """By kind and case: the same model of each platform."""
    repo = qv.ModelRepository(folder)
    made = {f"windows-{case}": add_windows(repo, case) for case in WINDOWS}
    made |= {f"means-{case}": add_means(repo, case) for case in MEANS}
    return made


@pytest.fixture(scope="module")
def server(serve_module: Serve, folder: Path, models: dict[str, dict[str, qv.Model]]) -> ServerProcess:
    served = [
        f"--load-model={one.name}" for case in models.values() for one in case.values() if "SCRIPT" not in one.name
    ]
    return serve_module(folder, "--model-control-mode=explicit", *served)


def ask_script(server: ServerProcess, model: qv.Model, updates: Samples) -> list[list[Samples]]:
    """The answers of a script, which is loaded for it: each of its instances takes the time to import PyTorch."""
    with Client(server.http, timeout_s=240) as client:
        client.load(model.name)
        try:
            return ask(server, model, updates)
        finally:
            client.unload(model.name)


def ask(server: ServerProcess, model: qv.Model, updates: Samples) -> list[list[Samples]]:
    """The answers to the updates `[sequence, request, ...]`, by sequence."""
    (name,) = model.inputs
    count = len(updates)
    with SequenceStream(server) as stream:
        for at in range(REQUESTS):
            for sequence in range(count):
                flags = {"start": at == 0, "end": at == REQUESTS - 1}
                stream.send(model.name, name, updates[sequence, at], sequence + 1, **flags)
        answers = list(stream.receive_all(count * REQUESTS))
    return [answers[sequence::count] for sequence in range(count)]


def run_script(model: qv.Model, updates: Samples) -> list[Samples]:
    """What a script gives for the updates `[request, ...]` of a sequence; its states are kept here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather load something else
        script = torch.jit.load(str(Path(str(model.fs), model.name, "1", "model.pt")))
    states = [torch.zeros(list(state.dims)) for state in model.config.sequence_batching.state]
    found = []
    for update in updates:
        expected = script(torch.from_numpy(update), *states)
        states = list(expected[len(model.outputs) :])
        found.append(expected[0].numpy())
    return found


def noise(models: dict[str, qv.Model]) -> Samples:
    ((_, tensor),) = next(iter(models.values())).inputs.items()
    shape = [int(size or 0) for size in tensor.shape]
    return np.random.default_rng(4).standard_normal((SEQUENCES, REQUESTS, *shape), np.float32)


def bits(answers: Sequence[Samples]) -> bytes:
    return b"".join(answer.tobytes() for answer in answers)


@pytest.mark.parametrize("case", WINDOWS)
def test_every_kind_of_snapshotter_gives_the_same_windows(
    server: ServerProcess, models: dict[str, dict[str, qv.Model]], case: str
) -> None:
    kinds = models[f"windows-{case}"]
    updates = noise(kinds)
    channels, stride, length, _ = WINDOWS[case]
    expected = [windows(np.concatenate(list(one[:, 0]), axis=1), stride, length) for one in updates]
    first = [(one[:, : channels[0]] if channels[0] else one[:, 0]).tobytes() for one in expected]
    assert [bits(one) for one in ask(server, kinds["SNAPSHOTTER"], updates)] == first
    assert [bits(one) for one in ask(server, kinds["ONNX"], updates)] == first
    if case in SERVED:
        assert [bits(one) for one in ask_script(server, kinds["TORCHSCRIPT"], updates)] == first
    assert bits(run_script(kinds["TORCHSCRIPT"], updates[0])) == first[0]


@pytest.mark.parametrize("case", MEANS)
def test_every_kind_of_averager_gives_the_same_means(
    server: ServerProcess, models: dict[str, dict[str, qv.Model]], case: str
) -> None:
    kinds = models[f"means-{case}"]
    updates = noise(kinds)
    update, count, *_, unbiased = MEANS[case]
    kernels = [np.concatenate(list(one)) for one in updates]
    kernels = [one if one.ndim > 2 else one[:, None] for one in kernels]
    expected = [means(one, update, count, unbiased=unbiased) for one in kernels]

    def joined(answers: Sequence[Samples]) -> bytes:
        return np.concatenate([one.reshape(len(expected[0]), -1) for one in answers], axis=1).tobytes()

    bit = [one.tobytes() for one in expected]
    assert [joined(one) for one in ask(server, kinds["AVERAGER"], updates)] == bit
    assert [joined(one) for one in ask(server, kinds["ONNX"], updates)] == bit
    if case in SERVED:
        assert [joined(one) for one in ask_script(server, kinds["TORCHSCRIPT"], updates)] == bit
    assert joined(run_script(kinds["TORCHSCRIPT"], updates[0])) == bit[0]


def test_the_states_of_an_exported_model_are_no_tensors_of_requests(models: dict[str, dict[str, qv.Model]]) -> None:
    model = models["windows-many"]["ONNX"]
    assert list(model.inputs) == ["snapshot_update"]
    assert list(model.outputs) == ["windows-many-0.x_snapshot"]
    (state,) = model.config.sequence_batching.state
    assert (state.input_name, state.output_name, list(state.dims)) == ("input_snapshot", "output_snapshot", [1, 2, 8])
    assert state.initial_state[0].zero_data
    assert model.config.sequence_batching.max_sequence_idle_microseconds == 10_000_000
    assert [(group.count, group.kind) for group in model.config.instance_group] == [(SEQUENCES, 0)]


def test_a_script_is_called_as_servers_find_its_tensors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    repo = qv.ModelRepository(tmp_path)
    inputs = [exposed(repo, "net", (None, 2, 8)), exposed(repo, "flat", (None, 8))]
    with caplog.at_level(logging.WARNING):
        model = streaming.make_streaming_input_model(repo, inputs, 2, platform=qv.Platform.TORCHSCRIPT)
    assert "no name that NVIDIA Triton finds" not in caplog.text
    assert list(model.outputs) == ["net.x_snapshot__0", "flat.x_snapshot__1"]
    assert model.config.sequence_batching.state[0].output_name == "output_snapshot__2"


def test_an_ensemble_of_exported_models_gives_the_bits_of_native_ones(tmp_path: Path, serve: Serve) -> None:
    repo = qv.ModelRepository(tmp_path)
    net = repo.add("net", qv.Platform.ONNX)
    net.export_version(halves(2, 32))
    kinds = {"native": (qv.Platform.SNAPSHOTTER, qv.Platform.AVERAGER), "onnx": (qv.Platform.ONNX,) * 2}
    for name, (before, behind) in kinds.items():
        ensemble = repo.add(name, qv.Platform.ENSEMBLE)
        assert isinstance(ensemble, qv.EnsembleModel)
        ensemble.add_streaming_inputs(net.inputs["X"], 8, 4, streams_per_gpu=SEQUENCES, platform=before)
        ensemble.add_streaming_output(net.outputs["Y"], 8, 3, 4, platform=behind, streams_per_gpu=SEQUENCES)
        ensemble.export_version(None)
    server = serve(tmp_path)
    signal = np.random.default_rng(1).standard_normal((2, 9 * REQUESTS * 32), np.float32)
    found = []
    for name in kinds:
        with InferenceClient(server.grpc, name) as client:
            # Among as many sequences as an exported model has instances for.
            found.append(bits(list(client.stream(signal, sequences=SEQUENCES))))
    assert found[0] == found[1]


def test_a_stream_through_exported_models_moves_between_servers(tmp_path: Path, serve: Serve) -> None:
    repo = qv.ModelRepository(tmp_path)
    net = repo.add("net", qv.Platform.ONNX)
    net.export_version(halves(2, 32))
    ensemble = repo.add("chain", qv.Platform.ENSEMBLE)
    assert isinstance(ensemble, qv.EnsembleModel)
    ensemble.add_streaming_inputs(net.inputs["X"], 8, 4, streams_per_gpu=2, platform=qv.Platform.ONNX)
    ensemble.add_streaming_output(net.outputs["Y"], 8, 3, 4, streams_per_gpu=2, platform=qv.Platform.ONNX)
    ensemble.export_version(None)
    here, there = serve(tmp_path), serve(tmp_path)
    updates = np.random.default_rng(1).standard_normal((10, 1, 2, 32), np.float32)

    def send(stream: SequenceStream, sequence: int, numbers: range) -> bytes:
        for number in numbers:
            flags = {"start": number == 0, "end": number == 9}
            stream.send("chain", "snapshot_update", updates[number], sequence, **flags)
        return bits(list(stream.receive_all(len(numbers))))

    with SequenceStream(here) as first, SequenceStream(there) as second:
        stayed = send(first, 1, range(10))
        moved = send(first, 2, range(5))
        states = streaming.take_states(here.http, "chain", 2)
        assert set(states) == {"snapshotter", "aggregator"}
        streaming.put_states(there.http, "chain", 2, states)
        moved += send(second, 2, range(5, 10))
    assert moved == stayed


def test_a_layer_for_one_channel_without_an_axis_is_made_as_in_hermes() -> None:
    layer = streaming.OnlineAverager(1, 1, 2, None)
    means, state = layer(torch.tensor([[10.0, 20.0, 30.0]]), torch.zeros(2))
    assert (means.tolist(), state.tolist()) == ([[10.0]], [15.0, 0.0])


class Sum(torch.nn.Module):  # type: ignore[misc]
    """All that came so far, and how often something came."""

    def forward(self, x: Any, total: Any, count: Any) -> Any:
        return x + total, x + total, count + 1


class Growing(torch.nn.Module):  # type: ignore[misc]
    """A state that does not stay as it is."""

    def forward(self, x: Any, total: Any) -> Any:
        return x, torch.cat([total, x])


@pytest.mark.parametrize("dynamo", [False, None])
def test_a_layer_of_ones_own_keeps_its_states_in_the_server(tmp_path: Path, serve: Serve, dynamo: bool | None) -> None:
    repo = qv.ModelRepository(tmp_path)
    model = streaming.add_streaming_model(
        repo, Sum(), "sum", "x", (1, 4), ["total", "count"], [(1, 4), (1,)], ["sum"], 2, dynamo=dynamo
    )
    assert [one.input_name for one in model.config.sequence_batching.state] == ["input_total", "input_count"]
    again = streaming.add_streaming_model(repo, Sum(), "sum", "x", (1, 4), ["a", "b"], [(1, 4), (1,)], ["sum"], 1)
    assert again.name == "sum_0"
    updates = np.arange(2 * REQUESTS * 4, dtype=np.float32).reshape(2, REQUESTS, 1, 4)
    for answers, sent in zip(ask(serve(tmp_path), model, updates), updates, strict=True):
        np.testing.assert_array_equal(np.stack(answers), np.cumsum(sent, axis=0))


@pytest.mark.parametrize(
    ("layer", "states", "error", "text"),
    [
        (Growing(), {"total": (1, 4)}, ExportError, r"state 'total' has shape \[1, 4\] and comes out as \[2, 4\]"),
        (Sum(), {"total": (1, 4)}, ExportError, "missing 1 required positional argument"),
        (Sum(), {"total": (None, 4), "count": (1,)}, ConfigError, "'total' has shape .*, expected fixed sizes"),
        (Sum(), {}, ConfigError, "has states of different names"),
    ],
)
def test_a_layer_that_does_not_fit_leaves_no_model(
    tmp_path: Path, layer: Any, states: dict[str, Any], error: type[Exception], text: str
) -> None:
    repo = qv.ModelRepository(tmp_path)
    shapes = list(states.values())
    with pytest.raises(error, match=text):
        streaming.add_streaming_model(repo, layer, "m", "x", (1, 4), list(states), shapes, ["y"], 1)
    assert not repo.models
    assert not (tmp_path / "m").exists()


def test_a_streaming_model_is_made_as_what_can_stream(tmp_path: Path) -> None:
    repo = qv.ModelRepository(tmp_path)
    tensor = exposed(repo, "net", (None, 2, 8))
    with pytest.raises(ConfigError, match="cannot be made as PYTHON; expected SNAPSHOTTER, ONNX, TORCHSCRIPT"):
        streaming.make_streaming_input_model(repo, tensor, 2, platform=qv.Platform.PYTHON)
    with pytest.raises(ConfigError, match="cannot be exported as AVERAGER"):
        streaming.add_streaming_model(
            repo, Sum(), "m", "x", (1,), ["t"], [(1,)], ["y"], 1, platform=qv.Platform.AVERAGER
        )

"""Streaming models out of a training script: what is written, and what is refused before anything is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes import streaming
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError

SHAPES: dict[str, tuple[tuple[str, tuple[int | None, ...], str], ...]] = {
    "net": (("x", (None, 2, 8), "FP32"), ("y", (None, 2, 8), "FP32")),
    "flat": (("x", (None, 8), "FP32"), ("y", (None, 8), "FP32")),
    "short": (("x", (None, 1, 4), "FP32"), ("y", (4, 4), "FP32")),
    "whole": (("x", (None, 8), "INT64"), ("y", (None, 8), "INT64")),
    "texts": (("x", (None, 8), "BYTES"), ("y", (None, 1), "FP32")),
    "free": (("x", (None, 2, None), "FP32"), ("y", (None, 8, 1, 1), "FP32")),
}


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    """Models of all kinds of shapes; none of them has a version, which joining does not ask for."""
    repo = qv.ModelRepository(tmp_path)
    for name, (source, result) in SHAPES.items():
        config = repo.add(name, qv.Platform.ONNX).config
        config.add_input(source[0], source[1], source[2])
        config.add_output(result[0], result[1], result[2])
        config.write()
    return repo


@pytest.fixture
def ensemble(repo: qv.ModelRepository) -> qv.EnsembleModel:
    made = repo.add("stream", qv.Platform.ENSEMBLE)
    assert isinstance(made, qv.EnsembleModel)
    return made


def tensors(side: Any) -> dict[str, tuple[int | None, ...]]:
    return {tensor.name: tensor.shape for tensor in side.values()}


def test_a_snapshotter_gives_each_input_its_windows_under_its_name(repo: qv.ModelRepository) -> None:
    inputs = [repo.models["net"].inputs["x"], repo.models["flat"].inputs["x"]]
    model = streaming.make_streaming_input_model(repo, inputs, stride_size=2, batch_size=16)
    assert (model.name, model.platform, model.versions) == ("snapshotter", qv.Platform.SNAPSHOTTER, [1])
    assert tensors(model.inputs) == {"snapshot_update": (1, 3, 32)}
    assert tensors(model.outputs) == {"net.x_snapshot": (16, 2, 8), "flat.x_snapshot": (16, 8)}
    assert model.config.sequence_batching.max_sequence_idle_microseconds == 10_000_000


def test_a_streaming_model_lists_its_states_as_hermes_does(repo: qv.ModelRepository) -> None:
    model = streaming.make_streaming_input_model(repo, repo.models["net"].inputs["x"], 2, batch_size=16)
    (state,) = parse_pbtxt(str(model.fs.read("snapshotter/config.pbtxt"))).sequence_batching.state
    (initial,) = state.initial_state
    assert (state.input_name, state.output_name, list(state.dims)) == ("input_snapshot", "output_snapshot", [1, 2, 8])
    assert (initial.name, list(initial.dims), initial.zero_data) == ("snapshot", [1, 2, 8], True)
    assert state.data_type == initial.data_type == model.config.input[0].data_type
    averager = streaming.make_streaming_output_model(repo, repo.models["net"].outputs["y"], 2, 3, batch_size=4)
    (state,) = averager.config.sequence_batching.state
    assert (state.input_name, state.initial_state[0].name) == ("input_online_average", "online_average")
    assert list(state.dims) == [2, 12]


def test_a_streaming_model_asks_for_no_gpu(repo: qv.ModelRepository) -> None:
    model = streaming.make_streaming_input_model(repo, repo.models["net"].inputs["x"], 2, streams_per_gpu=3)
    groups = [(group.count, group.kind) for group in model.config.instance_group]
    assert groups == [(3, 0)]  # KIND_AUTO
    model.config.scale_instance_group(5)
    assert model.config.instance_group[0].count == 5


def test_an_averager_says_how_many_predictions_make_a_mean(repo: qv.ModelRepository) -> None:
    model = streaming.make_streaming_output_model(repo, repo.models["net"].outputs["y"], 2, 3, batch_size=4)
    assert (model.name, model.platform, model.versions) == ("aggregator", qv.Platform.AVERAGER, [1])
    assert tensors(model.inputs) == {"update": (4, 2, 8)}
    assert tensors(model.outputs) == {"output_stream": (1, 2, 8)}
    assert model.config.parameters["num_updates"].string_value == "3"
    assert "unbiased_start" not in model.config.parameters
    other = streaming.make_streaming_output_model(repo, repo.models["net"].outputs["y"], 2, 3, 4, unbiased_start=True)
    assert other.config.parameters["unbiased_start"].string_value == "1"


def test_an_averager_has_the_fixed_batch_of_its_predictions(repo: qv.ModelRepository) -> None:
    model = streaming.make_streaming_output_model(repo, repo.models["short"].outputs["y"], 1, 4)
    assert tensors(model.inputs) == {"update": (4, 4)}
    assert tensors(model.outputs) == {"output_stream": (1, 4)}


def test_a_name_in_use_gets_a_number(repo: qv.ModelRepository) -> None:
    tensor = repo.models["net"].inputs["x"]
    made = [streaming.make_streaming_input_model(repo, tensor, 2, name=name) for name in (None, None, "mine", "mine")]
    assert [model.name for model in made] == ["snapshotter", "snapshotter_0", "mine", "mine_0"]


def test_a_repository_that_is_opened_again_knows_its_streaming_models(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, tmp_path: Path
) -> None:
    ensemble.add_streaming_inputs(repo.models["net"].inputs["x"], stream_size=2)
    ensemble.add_streaming_output(repo.models["net"].outputs["y"], 2, 3, batch_size=1)
    assert ensemble.export_version(None) == "stream/1/model.empty"
    snapshotter = repo.models["snapshotter"]
    snapshotter.config.sequence_batching.max_sequence_idle_microseconds = 25 * 10**6
    snapshotter.config.write()
    again = qv.ModelRepository(tmp_path)
    assert not again.broken
    assert again.models["snapshotter"].config.sequence_batching.max_sequence_idle_microseconds == 25_000_000
    assert again.models["aggregator"].platform is qv.Platform.AVERAGER
    written = parse_pbtxt((tmp_path / "stream" / "config.pbtxt").read_text())
    assert [step.model_name for step in written.ensemble_scheduling.step] == ["snapshotter", "net", "aggregator"]
    assert written.parameters["states"].string_value == "net/x"


def test_what_streams_in_and_out_are_tensors_of_the_ensemble(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    inputs = ensemble.add_streaming_inputs([repo.models["net"].inputs["x"]], stream_size=2, batch_size=4)
    output = ensemble.add_streaming_output(repo.models["net"].outputs["y"], 2, 3, batch_size=4)
    assert inputs == qv.ExposedTensor(ensemble, "snapshot_update", (1, 2, 8), "FP32")
    assert output == qv.ExposedTensor(ensemble, "output_stream", (1, 2, 8), "FP32")


def test_every_call_adds_a_stream_of_its_own(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    net, short = repo.models["net"], repo.models["short"]
    first = ensemble.add_streaming_inputs(net.inputs["x"], stream_size=2)
    second = ensemble.add_streaming_inputs(short.inputs["x"], stream_size=4, name="slow")
    assert (first.name, first.shape) == ("snapshot_update", (1, 2, 2))
    assert (second.name, second.shape) == ("slow.snapshot_update", (1, 1, 4))
    assert ensemble.config.parameters["states"].string_value == "net/x,short/x"
    out = ensemble.add_streaming_output(net.outputs["y"], 2, 3, batch_size=1)
    other = ensemble.add_streaming_output(short.outputs["y"], 1, 4, name="slow-mean")
    assert (out.name, other.name) == ("output_stream", "slow-mean.output_stream")
    ensemble.export_version(None)


def test_a_window_may_feed_more_models(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    net = repo.models["net"]
    twin = repo.add("twin", qv.Platform.ONNX)
    twin.config.add_input("x", (None, 2, 8))
    twin.config.add_output("z", (None, 1))
    twin.config.write()
    ensemble.add_streaming_inputs(net.inputs["x"], stream_size=2)
    ensemble.pipe(repo.models["snapshotter"].outputs["net.x_snapshot"], twin.inputs["x"])
    ensemble.add_output(net.outputs["y"])
    ensemble.add_output(twin.outputs["z"])
    ensemble.export_version(None)
    assert tensors(ensemble.inputs) == {"snapshot_update": (1, 2, 2)}


@pytest.mark.parametrize(
    ("inputs", "sizes", "text"),
    [
        (["net", "short"], (2, 1), "windows of one length, got net.x .*, short.x"),
        (["net", "net"], (2, 1), "net.x is listed twice"),
        (["flat", "whole"], (2, 1), "have one datatype, got flat.x FP32, whole.x INT64"),
        (["texts"], (2, 1), "keeps numbers; got BYTES"),
        (["free"], (2, 1), r"free.x has shape \[None, 2, None\]: a streaming tensor has fixed sizes"),
        ([], (2, 1), "needs at least one input"),
        (["net"], (0, 1), "stride_size is 0, expected a whole number from 1 on"),
        (["net"], (2, True), "batch_size is True"),
        (["net"], (2.0, 1), r"stride_size is 2\.0"),
    ],
)
def test_inputs_that_no_snapshotter_feeds_change_nothing(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, inputs: list[str], sizes: tuple[Any, Any], text: str
) -> None:
    before, models = str(ensemble.config), set(repo.models)
    with pytest.raises(ConfigError, match=text):
        ensemble.add_streaming_inputs([repo.models[name].inputs["x"] for name in inputs], *sizes)
    assert (str(ensemble.config), set(repo.models)) == (before, models)
    assert not (Path(str(repo.fs)) / "snapshotter").exists()


@pytest.mark.parametrize(
    ("model", "sizes", "text"),
    [
        ("net", (3, 3, 1), "Not enough data: 3 updates of 3 samples are more than the 8 of net.y"),
        ("net", (2, 3, None), "net.y has a batch that requests choose; batch_size says"),
        ("short", (1, 2, 3), "short.y has a batch of 4, not of 3"),
        ("whole", (1, 2, 1), "whole.y is INT64; means are of FP32 or FP64"),
        ("free", (1, 2, 1), r"expected \(batch, channels, samples\) or \(batch, samples\)"),
        ("net", (0, 2, 1), "update_size is 0"),
        ("net", (1, 0, 1), "num_updates is 0"),
        ("net", (1, 1, 0), "batch_size is 0"),
    ],
)
def test_predictions_that_no_averager_takes_change_nothing(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, model: str, sizes: tuple[Any, Any, Any], text: str
) -> None:
    before, models = str(ensemble.config), set(repo.models)
    with pytest.raises(ConfigError, match=text):
        ensemble.add_streaming_output(repo.models[model].outputs["y"], *sizes)
    assert (str(ensemble.config), set(repo.models)) == (before, models)


def test_an_input_that_is_fed_already_leaves_no_snapshotter_behind(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    net = repo.models["net"]
    ensemble.add_streaming_inputs(net.inputs["x"], stream_size=2)
    before = str(ensemble.config)
    with pytest.raises(ConfigError, match=r"a snapshot -> net\.x: it is fed by snapshotter\.net\.x_snapshot"):
        ensemble.add_streaming_inputs(net.inputs["x"], stream_size=4)
    assert str(ensemble.config) == before
    assert "snapshotter_0" not in repo.models


def test_a_batch_is_no_larger_than_the_model_behind_takes(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    repo.models["net"].config.max_batch_size = 4
    with pytest.raises(ConfigError, match=r"net\.x takes batches up to 4, not 16"):
        ensemble.add_streaming_inputs(repo.models["net"].inputs["x"], stream_size=2, batch_size=16)
    ensemble.add_streaming_inputs(repo.models["net"].inputs["x"], stream_size=2, batch_size=4)


def test_sizes_may_be_whole_numbers_of_numpy(repo: qv.ModelRepository) -> None:
    net = repo.models["net"]
    windows = streaming.make_streaming_input_model(repo, net.inputs["x"], np.int64(2), np.int32(3))  # type: ignore[arg-type]
    assert tensors(windows.inputs) == {"snapshot_update": (1, 2, 6)}
    means = streaming.make_streaming_output_model(repo, net.outputs["y"], np.int64(2), np.int64(3), np.int64(1))  # type: ignore[arg-type]
    assert means.config.parameters["num_updates"].string_value == "3"


def test_a_stride_may_be_as_long_as_a_window_or_longer(repo: qv.ModelRepository) -> None:
    for stride in (8, 11):
        model = streaming.make_streaming_input_model(repo, repo.models["net"].inputs["x"], stride)
        assert tensors(model.inputs) == {"snapshot_update": (1, 2, stride)}

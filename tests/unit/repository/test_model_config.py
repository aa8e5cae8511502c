"""Attributes of a configuration: checked when set, written as a whole, and never written by halves."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import repository as qv
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError, RepositoryUseError
from support.exported import scaled


@pytest.fixture
def model(tmp_path: Path) -> qv.Model:
    model = qv.ModelRepository(tmp_path).add("m", qv.Platform.ONNX)
    model.export_version(scaled(columns=64))
    return model


def on_disk(model: qv.Model) -> str:
    return Path(str(model.fs), model.name, "config.pbtxt").read_text()


def test_the_text_is_that_of_the_file(tmp_path: Path) -> None:
    config = qv.ModelRepository(tmp_path).add("my-model", qv.Platform.ONNX).config
    assert repr(config) == 'name: "my-model"\nplatform: "onnxruntime_onnx"\n'
    config.add_input("x", (None, 64))
    config.add_output("y", (-1, 1))
    config.add_instance_group(count=4)
    assert str(config) == (
        'name: "my-model"\nplatform: "onnxruntime_onnx"\n'
        'input {\n  name: "x"\n  data_type: TYPE_FP32\n  dims: -1\n  dims: 64\n}\n'
        'output {\n  name: "y"\n  data_type: TYPE_FP32\n  dims: -1\n  dims: 1\n}\n'
        "instance_group {\n  count: 4\n  kind: KIND_GPU\n}\n"
    )


def test_a_configuration_knows_its_model_and_its_file_is_read_as_a_message(model: qv.Model) -> None:
    assert model.config.model is model
    message = model.fs.read_config("m/config.pbtxt")
    assert message == parse_pbtxt(on_disk(model))
    assert [list(tensor.dims) for tensor in message.input] == [[-1, 64]]
    message.max_batch_size = 4
    model.fs.write_config(message, "m/config.pbtxt")
    assert model.fs.read_config("m/config.pbtxt").max_batch_size == 4
    with pytest.raises(FileNotFoundError):
        model.fs.read_config("none/config.pbtxt")
    model.fs.write("no configuration", "m/config.pbtxt")
    with pytest.raises(ConfigError, match=r"m/config\.pbtxt"):
        model.fs.read_config("m/config.pbtxt")


def test_what_is_set_is_what_is_written(model: qv.Model) -> None:
    model.config.max_batch_size = 8
    model.config.dynamic_batching = {"max_queue_delay_microseconds": 500}
    model.config.version_policy.latest.num_versions = 2
    model.config.optimization.graph.level = -1
    before = on_disk(model)
    model.config.write()
    written = parse_pbtxt(on_disk(model))
    assert on_disk(model) != before
    assert written.max_batch_size == 8
    assert written.dynamic_batching.max_queue_delay_microseconds == 500
    assert written.version_policy.latest.num_versions == 2
    assert written.optimization.graph.level == -1
    model.config.dynamic_batching = None
    assert not model.config.HasField("dynamic_batching")
    model.config.dynamic_batching = {}
    assert model.config.HasField("dynamic_batching")


def test_lists_and_maps_are_set_as_a_whole(model: qv.Model) -> None:
    model.config.instance_group = [{"count": 2, "kind": "KIND_CPU"}]
    model.config.instance_group = ({"count": 3, "kind": "KIND_CPU"},)
    model.config.parameters = {"a": {"string_value": "b"}}
    assert [group.count for group in model.config.instance_group] == [3]
    assert model.config.parameters["a"].string_value == "b"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("max_batchsize", 8, "did you mean 'max_batch_size'"),
        ("max_batch_size", "8", "'max_batch_size' of model 'm' cannot be '8'"),
        ("max_batch_size", -1, "'max_batch_size' must be non-negative"),
        ("max_batch_size", 1 << 40, "cannot be"),
        ("instance_group", [{"counts": 2}], "cannot be"),
        ("version_policy", 3, "cannot be"),
        ("name", "other", "identifies model 'm'"),
        ("platform", "tensorrt_plan", "identifies model 'm'"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_when_it_is_set(
    model: qv.Model, field: str, value: object, message: str
) -> None:
    before = str(model.config)
    with pytest.raises(ConfigError) as caught:
        setattr(model.config, field, value)
    assert message in caught.value.explain()
    assert str(model.config) == before


def test_a_field_that_is_not_there_is_an_attribute_error(model: qv.Model) -> None:
    with pytest.raises(AttributeError):
        _ = model.config.no_such_field
    assert {"max_batch_size", "input", "write"} <= set(dir(model.config))


def test_letting_a_model_batch_moves_the_batch_axis(model: qv.Model) -> None:
    shown = model.inputs["x"].shape
    model.config.max_batch_size = 8
    assert list(model.config.input[0].dims) == [64]
    assert model.inputs["x"].shape == shown == (None, 64)
    model.config.max_batch_size = 4
    assert list(model.config.input[0].dims) == [64]
    model.config.max_batch_size = 0
    assert list(model.config.input[0].dims) == [-1, 64]


def test_a_row_of_nothing_is_one_element_on_the_wire(tmp_path: Path) -> None:
    config = qv.ModelRepository(tmp_path).add("m", qv.Platform.ONNX).config
    config.add_input("x", (None, 4))
    config.add_output("score", (None,))
    config.max_batch_size = 8
    assert list(config.output[0].dims) == [1]
    assert config.output[0].HasField("reshape")
    config.validate()
    config.max_batch_size = 0
    assert list(config.output[0].dims) == [-1]
    assert not config.output[0].HasField("reshape")


def test_a_model_with_a_fixed_first_axis_cannot_batch(tmp_path: Path) -> None:
    config = qv.ModelRepository(tmp_path).add("m", qv.Platform.ONNX).config
    config.add_input("x", (1, 64))
    with pytest.raises(ConfigError, match=r"input 'x' has shape \[1, 64\], whose first axis is not variable"):
        config.max_batch_size = 8
    assert config.max_batch_size == 0
    batching = qv.ModelRepository(tmp_path / "b").add("m", qv.Platform.ONNX).config
    batching.max_batch_size = 8
    with pytest.raises(ConfigError, match="its first axis must be None"):
        batching.add_input("x", (1, 64))


def test_a_declared_tensor_is_the_one_in_the_configuration(model: qv.Model) -> None:
    made = model.config.add_input("mask", (None, 4), "int64", optional=True)
    made.dims[1] = 5
    found = model.config.input[1]
    assert (list(found.dims), found.optional, found.data_type) == ([-1, 5], True, found.data_type.real)
    assert model.inputs["mask"] == qv.ExposedTensor(model, "mask", (None, 5), "INT64")
    assert model.config.add_output("z", (0, 1)).dims[0] == -1


@pytest.mark.parametrize("name", ["float16", "FP16", "TYPE_FP16", "fp16"])
def test_a_datatype_goes_by_every_name_it_has(model: qv.Model, name: str) -> None:
    assert model.config.add_input("more", (None, 1), name).data_type == 10


def test_wrong_tensors_are_refused(model: qv.Model) -> None:
    for arguments, message in (
        (("x", (None, 64)), "has an input 'x' already"),
        (("", (None, 64)), "needs a name"),
        (("z", (None, "64")), "size '64'"),
        (("z", (None, -2)), "size -2"),
        (("z", (None, True)), "size True"),
        (("z", (None, 1), "float33"), "unknown datatype 'float33'"),
    ):
        with pytest.raises(ConfigError, match=message):
            model.config.add_input(*arguments)
    assert len(model.config.input) == 1


def test_instance_groups_are_added_and_scaled_by_index_and_by_name(model: qv.Model) -> None:
    config = model.config
    with pytest.raises(ValueError, match="add_instance_group adds one"):
        config.scale_instance_group(2)
    assert list(config.add_instance_group(gpus=3).gpus) == [0, 1, 2]
    config.add_instance_group("cpu", count=2, name="spare")
    config.add_instance_group("KIND_MODEL", gpus=[1])
    config.scale_instance_group(5)
    config.scale_instance_group(6, "spare")
    config.scale_instance_group(7, 2)
    assert [group.count for group in config.instance_group] == [5, 6, 7]
    for wrong, error, message in (
        ((8, 3), IndexError, "3 instance groups"),
        ((8, "other"), ValueError, "no instance group 'other'"),
        ((8, 1.5), TypeError, "name or index"),
        ((0,), ValueError, "0 instances"),
    ):
        with pytest.raises(error, match=message):
            config.scale_instance_group(*wrong)
    for arguments, message in (
        ({"kind": "gpus"}, "did you mean 'gpu'"),
        ({"gpus": 0}, "0 GPUs"),
        ({"count": 0}, "0 instances"),
        ({"name": "spare"}, "'spare' already"),
    ):
        with pytest.raises(ConfigError) as caught:
            config.add_instance_group(**arguments)
        assert message in caught.value.explain()
    assert len(config.instance_group) == 3


def test_what_a_server_would_refuse_is_not_written(model: qv.Model) -> None:
    before = on_disk(model)
    model.config.max_batch_size = 4
    model.config.dynamic_batching = {"preferred_batch_size": [8]}
    with pytest.raises(ConfigError, match="preferred size must be <= max batch size"):
        model.config.write()
    assert on_disk(model) == before


def test_a_concurrent_change_is_not_overwritten(model: qv.Model) -> None:
    other = qv.ModelRepository(str(model.fs)).models["m"]
    other.config.add_instance_group("cpu", count=2)
    other.config.write()
    model.config.add_instance_group("cpu", count=3)
    with pytest.raises(RepositoryUseError, match=r"config\.reload\(\)"):
        model.config.write()
    with pytest.raises(RepositoryUseError, match=r"config\.reload\(\)"):
        model.export_version(scaled(columns=64))
    assert model.versions == [1]
    model.config.reload()
    assert model.config.instance_group[0].count == 2
    model.config.write()


def test_parts_that_are_held_stay_parts_of_the_configuration(model: qv.Model) -> None:
    held = model.config.optimization
    held.graph.level = 1
    model.export_version(scaled(columns=64))
    held.graph.level = -1
    model.config.write()
    assert parse_pbtxt(on_disk(model)).optimization.graph.level == -1


def test_fields_can_be_set_when_a_configuration_is_made(model: qv.Model) -> None:
    config = qv.ModelConfig(model, max_batch_size=16)
    assert config.max_batch_size == 16
    with pytest.raises(ConfigError, match="cannot be changed"):
        qv.ModelConfig(model, name="other")

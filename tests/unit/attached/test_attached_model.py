"""What makes an attached model, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes import ConfigError, RepositoryError
from alipes.attached import AttachedModel
from alipes.config.pbtxt import parse_pbtxt

PORTS = {
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}],
}


def execute(requests: list[Any]) -> list[Any]:
    return requests


def model(config: Any = PORTS, instances: Any = (execute,), name: str = "m", **options: Any) -> AttachedModel:
    return AttachedModel(name, config, instances, **options)


def test_name_backend_and_instances_follow_from_the_arguments() -> None:
    config = parse_pbtxt(model(instances=[execute, execute]).config)
    assert (config.name, config.backend) == ("m", "attached")
    assert [(group.count, group.kind) for group in config.instance_group] == [(2, config.instance_group[0].KIND_CPU)]
    assert [port.name for port in (*config.input, *config.output)] == ["x", "y"]


def test_a_text_is_a_configuration_as_a_mapping_is() -> None:
    text = 'max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: -1 }'
    assert parse_pbtxt(model(text).config).max_batch_size == 4


def test_a_configuration_may_repeat_the_arguments() -> None:
    config = {**PORTS, "name": "m", "backend": "attached", "instance_group": [{"count": 2, "kind": "KIND_CPU"}]}
    assert parse_pbtxt(model(config, [execute] * 2).config).instance_group[0].count == 2


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": "other"}, "has name 'other', expected 'm'"),
        ({"backend": "python"}, "has backend 'python', expected 'attached'"),
        ({"platform": "onnxruntime_onnx"}, "has platform 'onnxruntime_onnx', and an attached model has none"),
        ({"instance_group": [{"count": 3}]}, "has 3 instances in its instance_group, and 1 objects were given"),
    ],
)
def test_a_configuration_that_contradicts_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        model({**PORTS, **changes})


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (3, "the configuration of model 'm' is a int; it takes a mapping of fields"),
        ({"inputs": []}, "inputs"),
        ("max_batch_size: many", "Couldn't parse integer: many"),
    ],
)
def test_what_is_no_configuration_is_refused(config: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        model(config)


@pytest.mark.parametrize("instances", [(), "execute", execute, None])
def test_instances_are_a_list_that_is_not_empty(instances: Any) -> None:
    with pytest.raises(ConfigError, match="needs a list of instances, at least one"):
        model(instances=instances)


class Model:
    def execute(self, requests: list[Any]) -> list[Any]:
        return requests


@pytest.mark.parametrize("instance", [3, object(), Model])
def test_an_instance_can_be_called_and_is_no_class(instance: object) -> None:
    with pytest.raises(ConfigError, match=r"instance 1 of model 'm' is .*; it takes a function of a list of requests"):
        model(instances=[execute, instance])


@pytest.mark.parametrize("name", ["", "../m", "a/b", ".m"])
def test_a_name_that_no_folder_can_have_is_refused(name: str) -> None:
    with pytest.raises(RepositoryError, match="invalid model name"):
        model(name=name)


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.5])
def test_a_version_is_a_positive_integer(version: Any) -> None:
    with pytest.raises(ConfigError, match="it takes an integer from 1"):
        model(version=version)


def test_a_model_is_a_folder_with_its_version(tmp_path: Path) -> None:
    folder = model(version=3).write(tmp_path)
    assert folder == tmp_path / "m"
    assert sorted(entry.name for entry in folder.iterdir()) == ["3", "config.pbtxt"]
    assert parse_pbtxt((folder / "config.pbtxt").read_text()).name == "m"

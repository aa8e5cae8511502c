from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.onnxruntime.backend import engine_spec
from alipes.config.instances import instance_names
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.parameters import read_parameters
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.schema import new_config
from alipes.config.spec import model_path, to_spec
from alipes.errors import ConfigError

TENSORS = """
    input { name: "X" data_type: TYPE_STRING dims: [ 1 ] reshape { } optional: true }
    output { name: "Y" data_type: TYPE_FP32 dims: [ 2, -1 ] label_filename: "labels.txt" }
"""


def spec(folder: Path, text: str, cores: int = 8) -> dict[str, Any]:
    config = parse_pbtxt(f'name: "m" backend: "onnxruntime" {text}')
    normalize(config)
    normalize_instance_groups(config, "cpu")
    parameters = read_parameters({key: config.parameters[key].string_value for key in config.parameters}, "m")
    return to_spec(config, 3, folder, engine_spec(config, parameters, cores))


def test_the_whole_specification(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("zero\n\ntwo\n")
    made = spec(
        tmp_path,
        f"""
        max_batch_size: 8 {TENSORS} instance_group {{ count: 2 }}
        dynamic_batching {{ preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 100 }}
        metric_tags {{ key: "team" value: "x" }}
        model_metrics {{ metric_control {{
          metric_identifier {{ family: "f" }} histogram_options {{ buckets: [ 0.5, 2 ] }} }} }}
        """,
    )
    config = new_config()
    config.ParseFromString(base64.b64decode(made.pop("config_proto")))
    assert config.name == "m"
    assert json.loads(made.pop("config_json"))["instance_group"][0]["name"] == "m_0"
    assert made == {
        "schema": 1,
        "name": "m",
        "namespace": "",
        "version": 3,
        "platform": "onnxruntime",
        "max_batch_size": 8,
        "inputs": [
            {
                "name": "X",
                "datatype": "BYTES",
                "dims": [1],
                "reshape": [],
                "optional": True,
                "allow_ragged_batch": False,
            }
        ],
        "outputs": [{"name": "Y", "datatype": "FP32", "dims": [2, -1], "reshape": None, "labels": ["zero", "", "two"]}],
        "batch_inputs": [],
        "batch_outputs": [],
        "decoupled": False,
        "endpoint": None,
        "response_cache": False,
        "scheduling": {
            "kind": "dynamic",
            "preferred_batch_sizes": [4],
            "max_queue_delay_us": 100,
            "preserve_ordering": False,
            "priority_levels": 0,
            "default_priority_level": 0,
            "default_queue_policy": {
                "delay": False,
                "default_timeout_us": 0,
                "allow_timeout_override": False,
                "max_queue_size": 0,
            },
            "priority_queue_policies": [],
            "held_until": 0,
        },
        "tuning": None,
        "instances": ["m_0_0", "m_0_1"],
        "passive_instances": [],
        "placements": {},
        "limits": [{"resources": [], "priority": 0}] * 2,
        "warmup": [],
        "engine": {
            "kind": "onnxruntime",
            "intra_op_threads": 4,
            "inter_op_threads": 1,
            "execution_mode": "sequential",
            "graph_optimization": "all",
            "session_config": {},
            "memory_arena": True,
            "gpu_providers": [],
            "gpu_libraries": [],
        },
        "metric_tags": {"team": "x"},
        "histogram_buckets": {"f": [0.5, 2.0]},
    }


def test_the_specification_is_json(tmp_path: Path) -> None:
    made = spec(tmp_path, "")
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize("text", ["max_batch_size: 4", "dynamic_batching { }"])
def test_without_batches_or_batcher_requests_run_one_by_one(tmp_path: Path, text: str) -> None:
    assert spec(tmp_path, text)["scheduling"] == {"kind": "direct"}


@pytest.mark.parametrize(
    ("cores", "text", "threads"),
    [
        (8, "instance_group { count: 1 }", 8),
        (8, "instance_group { count: 3 }", 2),
        (2, "instance_group [ { count: 2 }, { count: 3 } ]", 1),
        (8, 'parameters { key: "intra_op_thread_count" value { string_value: "5" } }', 5),
    ],
)
def test_instances_share_the_cores(tmp_path: Path, cores: int, text: str, threads: int) -> None:
    assert spec(tmp_path, text, cores)["engine"]["intra_op_threads"] == threads


def test_parallel_operators_get_threads_of_their_own(tmp_path: Path) -> None:
    parallel = 'instance_group { count: 1 } parameters { key: "execution_mode" value { string_value: "1" } }'
    engine = spec(tmp_path, parallel, 4)["engine"]
    assert (engine["execution_mode"], engine["inter_op_threads"]) == ("parallel", 4)


@pytest.mark.parametrize(("level", "word"), [(-1, "basic"), (0, "all"), (1, "extended"), (2, "disable"), (9, "all")])
def test_graph_levels_are_those_of_tritons_backend(tmp_path: Path, level: int, word: str) -> None:
    assert spec(tmp_path, f"optimization {{ graph {{ level: {level} }} }}")["engine"]["graph_optimization"] == word


def test_instances_are_numbered_within_their_group() -> None:
    config = parse_pbtxt('instance_group [ { name: "a" count: 2 }, { name: "b" count: 1 } ]')
    assert instance_names(config) == ["a_0", "a_1", "b_0"]


def test_passive_instances_stand_apart(tmp_path: Path) -> None:
    groups = """
        instance_group [ { name: "p" count: 2 passive: true },
                         { name: "a" count: 2
                           rate_limiter { resources { name: "R" count: 3 global: true } priority: 2 } } ]
    """
    made = spec(tmp_path, groups)
    assert (made["instances"], made["passive_instances"]) == (["a_0", "a_1"], ["p_0", "p_1"])
    assert made["limits"] == [{"resources": [{"name": "R", "global": True, "count": 3}], "priority": 2}] * 2


def test_samples_say_where_their_bytes_come_from(tmp_path: Path) -> None:
    inputs = "".join(
        f'inputs {{ key: "{name}" value: {{ data_type: TYPE_FP32 dims: [ 2, 3 ] {data} }} }}'
        for name, data in {"B": "zero_data: true", "A": "random_data: true", "C": 'input_data_file: "f"'}.items()
    )
    (sample,) = spec(
        tmp_path,
        f'model_warmup [ {{ name: "s" batch_size: 2 count: 3 {inputs} }}, {{ name: "skipped" batch_size: 0 }} ]',
    )["warmup"]
    port = {"datatype": "FP32", "dims": [2, 3]}
    assert sample == {
        "name": "s",
        "batch_size": 2,
        "count": 3,
        "inputs": [
            {"name": "A", **port, "data": {"kind": "random"}},
            {"name": "B", **port, "data": {"kind": "zero"}},
            {"name": "C", **port, "data": {"kind": "file", "path": str(tmp_path / "warmup" / "f")}},
        ],
    }


def test_a_label_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"failed to open text file for read .*: No such file or directory") as caught:
        spec(tmp_path, TENSORS)
    assert caught.value.code == "INTERNAL"


@pytest.mark.parametrize("name", ["/etc/passwd", "../labels.txt", "a/../../b"])
def test_a_label_file_lies_in_the_models_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"'output\.label_filename' must name a file inside the model's folder"):
        spec(tmp_path, TENSORS.replace("labels.txt", name))


def test_a_model_may_be_a_folder(tmp_path: Path) -> None:
    config = parse_pbtxt('default_model_filename: "model.onnx"')
    (tmp_path / "1" / "model.onnx").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"failed to stat file .*/1/model.onnx/model.onnx"):
        model_path(config, tmp_path, 1)
    (tmp_path / "1" / "model.onnx" / "model.onnx").write_bytes(b"")
    assert model_path(config, tmp_path, 1) == tmp_path / "1" / "model.onnx" / "model.onnx"


def test_an_absent_model_is_an_internal_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        model_path(parse_pbtxt('default_model_filename: "model.onnx"'), tmp_path, 1)
    assert caught.value.reason == f"Internal: failed to stat file {tmp_path}/1/model.onnx"


def test_a_model_file_lies_in_its_version(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'default_model_filename' must name a file inside"):
        model_path(parse_pbtxt('default_model_filename: "../2/model.onnx"'), tmp_path, 1)

"""The checks of a configuration, one text after the other; the recorded ones stand in `test_config_recorded.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.validate import check_declared, check_instances, check_poll
from alipes.config.validate.graph_steps import check_graph_step
from alipes.config.validate.instance_groups import check_instance_groups
from alipes.errors import ConfigError

OPTIONS = parse_flags(["models"], {}).model
X = 'input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }'


def poll(text: str) -> None:
    config = parse_pbtxt(f'name: "m" {text}')
    normalize(config)
    check_poll(config, "m", strict=False)


def load(text: str, folder: Path = Path("absent")) -> None:
    identity = 'name: "m" backend: "onnxruntime" platform: "onnxruntime_onnx"'
    config = parse_pbtxt(f"{identity} max_batch_size: 4 {text}")
    normalize(config)
    normalize_instance_groups(config, "refuse")
    check_instance_groups(config)
    check_declared(config)
    check_instances(config, folder, OPTIONS)


def controls(text: str) -> str:
    return f'backend: "python" sequence_batching {{ control_input [ {text} ] }}'


STEP = '{ model_name: "n" input_map { key: "X" value: "A" } output_map { key: "Y" value: "B" } }'

ENSEMBLE = """
    platform: "ensemble"
    input { name: "A" } output { name: "D" }
    ensemble_scheduling { step [
        { model_name: "n" input_map { key: "X" value: "A" } output_map { key: "Y" value: "B" } },
        { model_name: "n" input_map { key: "X" value: "B" } output_map { key: "Y" value: "D" } }
    ] }
"""


@pytest.mark.parametrize(
    "text",
    [
        'backend: "onnxruntime" platform: "onnxruntime_onnx"',
        'backend: "mine" platform: "mine_too"',
        'backend: "mine" platform: "onnxruntime_onnx"',
        'backend: "pytorch" platform: "libtorch"',
        'backend: "python" sequence_batching { }',
        'backend: "python" response_cache { enable: true }',
        'backend: "python" max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 1'
        " default_priority_level: 1 preferred_batch_size: [ 1, 4 ] }",
        controls('{ name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }'),
        controls('{ name: "S" control { bool_false_true: [ false, true ] } }'),
        ENSEMBLE,
    ],
)
def test_what_is_right_passes_the_poll(text: str) -> None:
    poll(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('default_model_filename: "x"', "unexpected platform type '' for m"),
        (
            'backend: "snapshotter" platform: "averager"',
            "unexpected 'platform' and 'backend' pair, got:averager, snapshotter",
        ),
        (
            'backend: "onnxruntime" platform: "mine"',
            "unexpected 'platform' and 'backend' pair, got:mine, onnxruntime",
        ),
        (
            'backend: "x" platform: "ensemble" ensemble_scheduling { }',
            "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
        ),
        (
            'backend: "x" dynamic_batching { preferred_batch_size: [ 1 ] }',
            "dynamic batching preferred size must be <= max batch size for m",
        ),
        (
            'backend: "x" dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY '
            "default_timeout_microseconds: 1 } }",
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
        ),
        (
            'backend: "x" dynamic_batching { priority_levels: 2 default_priority_level: 3 }',
            "default priority level must be in range [1, 2] for m",
        ),
        (
            'backend: "x" sequence_batching { } response_cache { enable: true }',
            "Response Cache does not currently support model m with sequence batching scheduler. "
            "Please disable the response cache.",
        ),
        (
            'backend: "x" sequence_batching { direct { minimum_slot_utilization: 1.5 } }',
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
        ),
        (
            'backend: "x" max_batch_size: 2 sequence_batching { oldest { preferred_batch_size: [ 3 ] } }',
            "sequence batching preferred batch size must be <= max batch size for m",
        ),
        (
            'backend: "x" sequence_batching { oldest { preferred_batch_size: [ -1 ] } }',
            "sequence batching preferred batch size must be positive for m",
        ),
        (
            controls('{ name: "T" control { int32_false_true: [ 0, 1 ] } }, { name: "T" }'),
            "sequence batching control tensor 'T' is specified for multiple control kinds for m",
        ),
        (
            controls('{ name: "T" control { int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ] } }'),
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
            "'bool_false_true' for CONTROL_SEQUENCE_START for m",
        ),
        (
            controls('{ name: "T" control { int32_false_true: [ 0 ] } }'),
            "sequence batching control 'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
        ),
        (
            controls('{ name: "C" control { kind: CONTROL_SEQUENCE_CORRID int32_false_true: [ 0, 1 ] } }'),
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for "
            "CONTROL_SEQUENCE_CORRID for m",
        ),
        (
            'backend: "x" model_metrics { metric_control { } }',
            "metric control must specify 'metric_identifier'",
        ),
        (
            'backend: "x" model_metrics { metric_control { metric_identifier { } } }',
            "metric identifier must specify non-empty 'family'",
        ),
        (
            'backend: "x" model_metrics { metric_control { metric_identifier { family: "f" } } }',
            "metric control must specify 'histogram_options'",
        ),
        (
            'backend: "x" model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { } } }',
            "histogram options must specify non-empty 'buckets'",
        ),
        (ENSEMBLE + "instance_group { }", "instance group should not be specified for ensemble 'm'"),
        (ENSEMBLE + "optimization { }", "optimization should not be specified for ensemble 'm'"),
        (ENSEMBLE + "model_warmup { }", "model_warmup can not be specified for ensemble 'm'"),
        (
            f'platform: "ensemble" ensemble_scheduling {{ step [ {", ".join([STEP] * 1025)} ] }}',
            "ensemble 'm' has 1025 steps, more than the limit of 1024",
        ),
        (
            ENSEMBLE.replace(
                'input_map { key: "X" value: "A" }',
                " ".join(f'input_map {{ key: "X{number}" value: "A" }}' for number in range(1025)),
            ),
            "step 0 of ensemble 'm' maps 1025 tensors, more than the limit of 1024",
        ),
        (ENSEMBLE.replace('model_name: "n"', ""), "must specify 'model_name' in step 0 of ensemble 'm'"),
        (
            ENSEMBLE.replace('output_map { key: "Y" value: "D" }', ""),
            "must specify 'output_map' in step 1 of ensemble 'm'",
        ),
        (
            ENSEMBLE.replace('value: "D"', 'value: "B"'),
            "ensemble tensor 'B' can appear in an output map only once for ensemble 'm' step 1",
        ),
        (
            ENSEMBLE.replace('input_map { key: "X" value: "B" }', 'input_map { key: "X" value: "Q" }'),
            "output 'D' for ensemble 'm' is not written: at least one of its depending tensors, 'Q', is not connected",
        ),
        (
            ENSEMBLE.replace('output { name: "D" }', 'output { name: "B" }'),
            "ensemble tensor 'D' is unused in ensemble 'm'",
        ),
    ],
)
def test_what_is_wrong_fails_the_poll_in_tritons_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        poll(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        X,
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }',
        'input { name: "X" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }',
        'input { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: [ 1, -1, -1 ] } }',
        'input { name: "X" data_type: TYPE_FP32 dims: [ 3, 2, 2 ] format: FORMAT_NCHW }',
        f'{X} batch_input {{ data_type: TYPE_INT32 target_name: "N" source_input: "X" }}',
        f'{X} model_warmup {{ batch_size: 0 inputs {{ key: "X" value {{ dims: [ -1 ] }} }} }}',
    ],
)
def test_what_is_right_loads(text: str) -> None:
    load(text)


def reshaped(dims: str, shape: str) -> str:
    return f'output {{ name: "Y" data_type: TYPE_FP32 dims: [ {dims} ] reshape {{ shape: [ {shape} ] }} }}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output { }", "model output must specify 'name' for m"),
        ('output { name: "Y" data_type: TYPE_FP32 }', "model output 'Y' must specify 'dims' for m"),
        (
            'output { name: "Y" data_type: TYPE_FP32 dims: [ -2 ] }',
            "model output 'Y' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
        ),
        (
            reshaped("2", "0"),
            "model output 'Y' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension "
            "for m",
        ),
        (reshaped("2, -1, 3", "3, -1, 2"), "model output 'Y' has different size for dims and reshape for m"),
        (reshaped("2", "-1"), "model output 'Y' has different size for dims and reshape for m"),
        (reshaped("-1", "2"), "model output 'Y' has different size for dims and reshape for m"),
        (reshaped("-1", ""), "model output 'Y' has different size for dims and reshape for m"),
        (
            reshaped("-1, -1", "-1"),
            "model output 'Y' has different number of variable-size dimensions for dims and reshape for m",
        ),
        (
            'input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] is_shape_tensor: true }',
            "shape tensors are only supported for TensorRT platform for m",
        ),
        (
            f'{X} batch_input {{ target_name: "N" source_input: "X" data_type: TYPE_INT64 }}',
            "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
        ),
        (
            f'{X} batch_input {{ target_name: "N" source_input: "Q" data_type: TYPE_INT32 }}',
            "unknown source input name 'Q' for m",
        ),
        (
            f'{X} batch_output {{ target_name: "Q" source_input: "X" }}',
            "unknown target output name 'Q' for m",
        ),
        (
            f'{X} {reshaped("1", "1")} batch_output {{ target_name: [ "Y", "Y" ] source_input: "X" }}',
            "target output name 'Y' can only be specified once for m",
        ),
        (
            f"{X} batch_output {{ }}",
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m",
        ),
        (
            "instance_group { kind: KIND_MODEL gpus: [ 0 ] }",
            "instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs",
        ),
    ],
)
def test_what_is_wrong_fails_the_load_in_tritons_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value) == message


SAMPLE = 'model_warmup {{ batch_size: 1 inputs {{ key: "X" value {{ data_type: TYPE_FP32 dims: [ 2 ] {} }} }} }}'


@pytest.mark.parametrize("source", ["zero_data: true", "random_data: true", 'input_data_file: "two"'])
def test_a_sample_that_fits_is_accepted(tmp_path: Path, source: str) -> None:
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "two").write_bytes(bytes(8))
    load(X + SAMPLE.format(source), tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            'input_data_file: "short"',
            r"warmup setting expects 8 bytes, but the data provided from shortonly has 7 bytes$",
        ),
        (
            'input_data_file: "absent"',
            r"^failed to open text file for read .*/warmup/absent: No such file or directory$",
        ),
        ('input_data_file: "../short"', r"must name a file inside the model's folder, got '../short'$"),
    ],
)
def test_the_file_of_a_sample_holds_its_bytes(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "short").write_bytes(bytes(7))
    with pytest.raises(ConfigError, match=message):
        load(X + SAMPLE.format(source), tmp_path)


def test_a_decoupled_model_within_a_graph_is_refused() -> None:
    decoupled = parse_pbtxt('name: "m" model_transaction_policy { decoupled: true }')
    graph = parse_flags(["models"], {}).graph
    check_graph_step(decoupled, graph)
    inner = replace(graph, single_responses={"m": "spec.nodes.root.steps[0]"})
    check_graph_step(parse_pbtxt('name: "m"'), inner)
    check_graph_step(parse_pbtxt('name: "n" model_transaction_policy { decoupled: true }'), inner)
    with pytest.raises(ConfigError, match=r"the graph needs one response of it at spec\.nodes\.root\.steps"):
        check_graph_step(decoupled, inner)

"""Drives every row of the table of fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.onnxruntime.backend import engine_spec
from alipes.config.fields import FIELDS, Field, find_field
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.parameters import read_parameters
from alipes.config.render import config_json
from alipes.config.schema import copy_config, descriptor, is_map, is_repeated
from alipes.config.spec import to_spec
from alipes.config.support import check_support
from alipes.errors import ConfigError
from google.protobuf import text_format

LEAVES: dict[str, Any] = {}
MESSAGES: set[str] = set()


def walk(message: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for field in message.fields:
        path = prefix + field.name
        inner = field.message_type
        if is_map(field):
            inner = inner.fields_by_name["value"].message_type
        yield path, None if inner is not None else field
        if inner is not None:
            yield from walk(inner, f"{path}.")


for path, leaf in walk(descriptor(), ""):
    if leaf is None:
        MESSAGES.add(path)
    else:
        LEAVES[path] = leaf


def set_field(message: Any, path: str) -> None:
    """Set a field to something else than its default, with all that it stands in."""
    name, _, rest = path.partition(".")
    field = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if field.message_type is None:
        sample = "x" if field.cpp_type == field.CPPTYPE_STRING else 1
        if is_repeated(field):
            value.append(sample)
        else:
            setattr(message, name, sample)
    elif is_map(field):
        inner = field.message_type.fields_by_name
        key: Any = 1 if inner["key"].cpp_type != inner["key"].CPPTYPE_STRING else "x"
        if inner["value"].message_type is None:
            value[key] = "x"
        else:
            value[key].SetInParent()
            if rest:
                set_field(value[key], rest)
    elif is_repeated(field):
        value.add()
        if rest:
            set_field(value[-1], rest)
    else:
        value.SetInParent()
        if rest:
            set_field(value, rest)


def outermost(row: Field) -> Field:
    """The row that answers for this one: the outermost that does not work."""
    parts = row.path.split(".")
    paths = [".".join(parts[: length + 1]) for length in range(len(parts))]
    return next(one for path in paths if (one := find_field(path)).status != "works")


def rows(status: str) -> list[Any]:
    return [pytest.param(row, id=row.path) for row in FIELDS if row.status == status]


def test_every_field_of_the_proto_file_has_one_row() -> None:
    assert [row.path for row in FIELDS if row.path not in LEAVES and row.path not in MESSAGES] == []
    assert sorted({*LEAVES, *MESSAGES} - {row.path for row in FIELDS}) == []
    assert len({row.path for row in FIELDS}) == len(FIELDS)


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.path)
def test_every_row_explains_itself(row: Field) -> None:
    assert row.help.endswith(".")
    assert bool(row.note) == (row.status != "works")


@pytest.mark.parametrize("row", rows("ignored"))
def test_an_ignored_field_gives_one_notice(row: Field, config: Any) -> None:
    set_field(config, row.path)
    answering = outermost(row)
    assert check_support(config) == [f"field '{answering.path}' of model 'm' is ignored: {answering.note}"]


@pytest.mark.parametrize("row", [row for row in rows("refused") if row.id in LEAVES])
def test_a_refused_field_is_refused_by_name(row: Field, config: Any) -> None:
    set_field(config, row.path)
    answering = outermost(row)
    with pytest.raises(ConfigError) as caught:
        check_support(config)
    assert str(caught.value) == f"field '{answering.path}' of model 'm' is not supported: {answering.note}"
    assert caught.value.key == answering.path
    assert caught.value.code == "UNSUPPORTED"


@pytest.mark.parametrize("row", rows("works"))
def test_a_field_that_works_is_accepted_in_silence_and_answered(row: Field, config: Any) -> None:
    before = config_json(config)
    if row.path not in ("input.dims", "output.dims"):
        config.ClearField(row.path.split(".")[0])
    set_field(config, row.path)
    assert check_support(config) == []
    assert config_json(config) != before


_QUEUE_POLICY = {
    "timeout_action": 1,
    "default_timeout_microseconds": 7,
    "allow_timeout_override": True,
    "max_queue_size": 3,
}

_CONTROL = 'control_input { name: "S" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }'
_STATE = 'state { input_name: "O" output_name: "N" data_type: TYPE_FP32 dims: [ 1 ] }'
_INITIAL = 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 1 ] data_file: "f" }'

# Field -> the rest of a configuration of sequences in which it says something.
_SEQUENCES = {
    "direct.max_queue_delay_microseconds": "direct { max_queue_delay_microseconds: 7 }",
    "direct.minimum_slot_utilization": "direct { minimum_slot_utilization: 0.5 }",
    "oldest.max_candidate_sequences": "oldest { max_candidate_sequences: 7 }",
    "oldest.preferred_batch_size": "oldest { preferred_batch_size: [ 2 ] }",
    "oldest.max_queue_delay_microseconds": "oldest { max_queue_delay_microseconds: 7 }",
    "max_sequence_idle_microseconds": "max_sequence_idle_microseconds: 7",
    "iterative_sequence": "iterative_sequence: true",
    "control_input.name": _CONTROL,
    "control_input.control.kind": _CONTROL,
    "control_input.control.int32_false_true": _CONTROL,
    "control_input.control.fp32_false_true": _CONTROL.replace("int32", "fp32"),
    "control_input.control.bool_false_true": _CONTROL.replace("int32", "bool").replace("0, 1", "false, true"),
    "control_input.control.data_type": 'control_input { name: "C" control { kind: CONTROL_SEQUENCE_CORRID '
    "data_type: TYPE_UINT64 } }",
    "state.input_name": _STATE,
    "state.output_name": _STATE,
    "state.data_type": _STATE,
    "state.dims": _STATE,
    "state.initial_state.dims": _STATE[:-1] + _INITIAL + " }",
    "state.initial_state.data_file": _STATE[:-1] + _INITIAL + " }",
}


def _sequences(config: Any, text: str) -> None:
    text_format.Parse(f"sequence_batching {{ {text} }}", config)


# Field -> a change of it that the data plane must be told.
CHANGES: dict[str, Callable[[Any], object]] = {
    "name": lambda config: setattr(config, "name", "other"),
    "platform": lambda config: setattr(config, "platform", "other"),
    "backend": lambda config: setattr(config, "backend", "other"),
    "max_batch_size": lambda config: setattr(config, "max_batch_size", 5),
    "input.name": lambda config: setattr(config.input[0], "name", "other"),
    "input.data_type": lambda config: setattr(config.input[0], "data_type", 1),
    "input.dims": lambda config: config.input[0].dims.append(3),
    "input.reshape.shape": lambda config: config.input[0].reshape.shape.extend([2, 1]),
    "input.optional": lambda config: setattr(config.input[0], "optional", True),
    "output.name": lambda config: setattr(config.output[0], "name", "other"),
    "output.data_type": lambda config: setattr(config.output[0], "data_type", 1),
    "output.dims": lambda config: config.output[0].dims.append(3),
    "output.reshape.shape": lambda config: config.output[0].reshape.shape.extend([2, 1]),
    "output.label_filename": lambda config: setattr(config.output[0], "label_filename", "labels.txt"),
    "optimization.graph.level": lambda config: setattr(config.optimization.graph, "level", 1),
    "dynamic_batching": lambda config: config.dynamic_batching.SetInParent(),
    "dynamic_batching.preferred_batch_size": lambda config: config.dynamic_batching.preferred_batch_size.append(2),
    "dynamic_batching.max_queue_delay_microseconds": lambda config: setattr(
        config.dynamic_batching, "max_queue_delay_microseconds", 7
    ),
    "input.allow_ragged_batch": lambda config: setattr(config.input[0], "allow_ragged_batch", True),
    "batch_input.kind": lambda config: _made(config).__setattr__("kind", 1),
    "batch_input.target_name": lambda config: _made(config).target_name.append("MORE"),
    "batch_input.data_type": lambda config: _made(config).__setattr__("data_type", 8),
    "batch_input.source_input": lambda config: _made(config).source_input.__setitem__(0, "other"),
    "batch_output.target_name": lambda config: _cut(config).target_name.append("MORE"),
    "batch_output.source_input": lambda config: _cut(config).source_input.__setitem__(0, "other"),
    "dynamic_batching.preserve_ordering": lambda config: setattr(config.dynamic_batching, "preserve_ordering", True),
    "dynamic_batching.priority_levels": lambda config: setattr(config.dynamic_batching, "priority_levels", 2),
    "dynamic_batching.default_priority_level": lambda config: setattr(
        config.dynamic_batching, "default_priority_level", 2
    ),
    **{
        f"dynamic_batching.default_queue_policy.{field}": lambda config, field=field, value=value: setattr(
            config.dynamic_batching.default_queue_policy, field, value
        )
        for field, value in _QUEUE_POLICY.items()
    },
    **{
        f"dynamic_batching.priority_queue_policy.{field}": lambda config, field=field, value=value: setattr(
            config.dynamic_batching.priority_queue_policy[1], field, value
        )
        for field, value in _QUEUE_POLICY.items()
    },
    **{f"sequence_batching.{path}": partial(_sequences, text=text) for path, text in _SEQUENCES.items()},
    "instance_group.passive": lambda config: config.instance_group.add(name="g", count=1, passive=True),
    "instance_group.rate_limiter.priority": lambda config: setattr(
        config.instance_group[0].rate_limiter, "priority", 2
    ),
    "instance_group.rate_limiter.resources.name": lambda config: _resource(config, name="other"),
    "instance_group.rate_limiter.resources.global": lambda config: _resource(config, **{"global": True}),
    "instance_group.rate_limiter.resources.count": lambda config: _resource(config, count=2),
    "instance_group.name": lambda config: setattr(config.instance_group[0], "name", "other"),
    "instance_group.count": lambda config: setattr(config.instance_group[0], "count", 3),
    "response_cache.enable": lambda config: setattr(config.response_cache, "enable", True),
    "model_warmup.name": lambda config: _sample(config, name="other"),
    "model_warmup.batch_size": lambda config: _sample(config, batch_size=2),
    "model_warmup.count": lambda config: _sample(config, count=3),
    "model_warmup.inputs.data_type": lambda config: _sample(config, input={"data_type": 1}),
    "model_warmup.inputs.dims": lambda config: _sample(config, input={"dims": [2]}),
    "model_warmup.inputs.zero_data": lambda config: _sample(config, input={"zero_data": True}),
    "model_warmup.inputs.random_data": lambda config: _sample(config, input={"random_data": True}),
    "model_warmup.inputs.input_data_file": lambda config: _sample(config, input={"input_data_file": "f"}),
    "model_transaction_policy.decoupled": lambda config: setattr(config.model_transaction_policy, "decoupled", True),
    "metric_tags": lambda config: config.metric_tags.update({"team": "x"}),
    "model_metrics.metric_control.metric_identifier.family": lambda config: _histogram(config, "other"),
    "model_metrics.metric_control.histogram_options.buckets": lambda config: _histogram(config, "f"),
    "parameters.string_value": lambda config: setattr(config.parameters["intra_op_thread_count"], "string_value", "3"),
}


def _histogram(config: Any, family: str) -> None:
    control = config.model_metrics.metric_control.add()
    control.metric_identifier.family = family
    control.histogram_options.buckets.append(1.0)


def _resource(config: Any, **fields: Any) -> None:
    config.instance_group[0].rate_limiter.resources.add(**({"name": "R", "count": 1} | fields))


def _sample(config: Any, input: dict[str, Any] | None = None, **fields: Any) -> None:
    sample = config.model_warmup.add(**({"name": "s", "batch_size": 1} | fields))
    sample.inputs["X"].MergeFrom(type(sample.inputs["X"])(**({"data_type": 11} | (input or {}))))


def _made(config: Any) -> Any:
    return config.batch_input.add(target_name=["MADE"], data_type="TYPE_FP32", source_input=[config.input[0].name])


def _cut(config: Any) -> Any:
    return config.batch_output.add(target_name=[config.output[0].name], source_input=[config.input[0].name])


# Fields that work elsewhere than in the specification.
ELSEWHERE = {
    "version_policy.latest.num_versions": "chooses versions (repository)",
    "version_policy.specific.versions": "chooses versions (repository)",
    "batch_output.kind": "there is only one",
    "input.format": "is checked against the number of dimensions",
    "instance_group.kind": "is checked, and moved to the CPU",
    "optimization.input_pinned_memory.enable": "means the same either way",
    "optimization.output_pinned_memory.enable": "means the same either way",
    "default_model_filename": "names the model file (plan)",
    "runtime": "is checked against the backend",
    "sequence_batching.oldest.preserve_ordering": "means the same either way",
    "sequence_batching.state.initial_state.name": "is for messages",
    "sequence_batching.state.initial_state.data_type": "is checked against the state's",
    "sequence_batching.state.initial_state.zero_data": "is what a state without a file begins with",
    "sequence_batching.state.use_same_buffer_for_input_output": "means the same either way",
    "sequence_batching.state.use_growable_memory": "means the same either way",
    "ensemble_scheduling.step.model_name": "reaches the data plane with the ensemble (prepare)",
    "ensemble_scheduling.step.model_version": "reaches the data plane with the ensemble (prepare)",
    "ensemble_scheduling.step.input_map": "reaches the data plane with the ensemble (prepare)",
    "ensemble_scheduling.step.output_map": "reaches the data plane with the ensemble (prepare)",
    "ensemble_scheduling.max_inflight_requests": "reaches the data plane with the ensemble (prepare)",
    "optimization.execution_accelerators.gpu_execution_accelerator.name": "acts on instances on GPUs (providers)",
    "optimization.execution_accelerators.gpu_execution_accelerator.parameters": "acts on instances on GPUs (providers)",
    "instance_group.gpus": "acts on instances on a GPU (prepare)",
    "model_repository_agents.agents.name": "acts before the load (agents)",
    "model_repository_agents.agents.parameters": "acts before the load (agents)",
}


def test_every_field_that_works_says_where() -> None:
    leaves = {row.path for row in FIELDS if row.status == "works" and row.path in LEAVES}
    assert leaves - {"metric_tags"} == {*CHANGES, *ELSEWHERE} - {"dynamic_batching", "metric_tags"}


@pytest.mark.parametrize("path", CHANGES)
def test_a_field_that_works_reaches_the_data_plane(path: str, config: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("zero\none\n")
    changed = copy_config(config)
    CHANGES[path](changed)
    specs = []
    for made in (config, changed):
        normalize(made)
        normalize_instance_groups(made, "cpu")
        parameters = read_parameters({key: made.parameters[key].string_value for key in made.parameters}, made.name)
        spec = to_spec(made, 1, tmp_path, engine_spec(made, parameters, 8))
        specs.append({key: value for key, value in spec.items() if not key.startswith("config_")})
    assert json.dumps(specs[0]) != json.dumps(specs[1])

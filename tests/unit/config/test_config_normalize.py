from __future__ import annotations

from typing import Any

import pytest
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.pbtxt import parse_pbtxt


def normalized(text: str) -> Any:
    config = parse_pbtxt(text)
    normalize(config)
    return config


def groups(text: str, gpu_fallback: Any = "cpu") -> tuple[list[tuple[str, str, int]], list[str]]:
    config = parse_pbtxt(f'name: "m" {text}')
    notices = normalize_instance_groups(config, gpu_fallback)
    return [(group.name, group.Kind.Name(group.kind), group.count) for group in config.instance_group], notices


def test_the_newest_version_is_served_by_default() -> None:
    assert normalized("").version_policy.latest.num_versions == 1
    assert normalized("version_policy { all { } }").version_policy.WhichOneof("policy_choice") == "all"
    assert normalized("version_policy { latest { num_versions: 3 } }").version_policy.latest.num_versions == 3


def test_pinned_memory_is_shown_unless_it_was_turned_off() -> None:
    optimization = normalized("optimization { input_pinned_memory { enable: false } }").optimization
    assert (optimization.input_pinned_memory.enable, optimization.output_pinned_memory.enable) == (False, True)


def test_the_largest_batch_is_preferred_by_default() -> None:
    assert list(normalized("max_batch_size: 8 dynamic_batching { }").dynamic_batching.preferred_batch_size) == [8]
    text = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 4 ] }"
    assert list(normalized(text).dynamic_batching.preferred_batch_size) == [2, 4]
    assert list(normalized("dynamic_batching { }").dynamic_batching.preferred_batch_size) == []


def test_a_sequence_may_be_silent_for_a_second() -> None:
    sequences = normalized("max_batch_size: 4 sequence_batching { oldest { } }").sequence_batching
    assert sequences.max_sequence_idle_microseconds == 1_000_000
    assert list(sequences.oldest.preferred_batch_size) == [4]
    assert normalized("sequence_batching { }").sequence_batching.WhichOneof("strategy_choice") is None


def test_an_ensemble_shows_its_transaction_policy_and_no_optimization() -> None:
    config = normalized('platform: "ensemble" ensemble_scheduling { }')
    assert config.HasField("model_transaction_policy")
    assert not config.HasField("optimization")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("m", "KIND_CPU", 1)]),
        ('backend: "onnxruntime"', [("m", "KIND_CPU", 2)]),
        ('backend: "onnxruntime" instance_group { kind: KIND_CPU }', [("m_0", "KIND_CPU", 2)]),
        ('backend: "onnxruntime" instance_group { kind: KIND_MODEL }', [("m_0", "KIND_MODEL", 1)]),
        ("instance_group { count: 3 }", [("m_0", "KIND_CPU", 3)]),
        ('instance_group [ { name: "a" }, { } ]', [("a", "KIND_CPU", 1), ("m_1", "KIND_CPU", 1)]),
    ],
)
def test_groups_get_name_kind_and_count(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert groups(text) == (expected, [])
    assert groups(text, "refuse") == (expected, [])


@pytest.mark.parametrize("kind", ["KIND_GPU", "KIND_AUTO"])
def test_a_group_for_gpus_runs_on_the_cpu_with_a_notice(kind: str) -> None:
    text = f'backend: "onnxruntime" instance_group {{ kind: {kind} gpus: [ 0, 1 ] }}'
    assert groups(text) == (
        [("m_0", "KIND_CPU", 1)],
        ["instance group m_0 of model m asks for a GPU and runs on the CPU"],
    )


def test_a_group_for_gpus_keeps_its_count() -> None:
    assert groups("instance_group { kind: KIND_GPU count: 3 }")[0] == [("m_0", "KIND_CPU", 3)]


def test_a_group_for_gpus_is_left_to_be_refused_where_that_is_wanted() -> None:
    assert groups("instance_group { kind: KIND_GPU }", "refuse") == ([("m_0", "KIND_GPU", 1)], [])

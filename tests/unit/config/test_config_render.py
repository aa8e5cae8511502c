from __future__ import annotations

import json
from typing import Any

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json


def rendered(text: str) -> Any:
    return json.loads(config_json(parse_pbtxt(text)))


def test_defaults_are_written_and_unset_messages_are_not() -> None:
    assert list(rendered("")) == [
        "name",
        "platform",
        "backend",
        "runtime",
        "max_batch_size",
        "input",
        "output",
        "batch_input",
        "batch_output",
        "instance_group",
        "default_model_filename",
        "cc_model_filenames",
        "metric_tags",
        "parameters",
        "model_warmup",
    ]


def test_the_text_has_no_white_space_and_keeps_letters() -> None:
    text = config_json(parse_pbtxt('name: "größe\\n\\""'))
    assert text.startswith('{"name":"größe\\n\\"","platform":""')


def test_a_oneof_shows_only_its_member() -> None:
    sample = rendered('model_warmup { inputs { key: "X" value { zero_data: false } } inputs { key: "Y" value { } } }')
    inputs = sample["model_warmup"][0]["inputs"]
    assert inputs["X"] == {"data_type": "TYPE_INVALID", "dims": [], "zero_data": False}
    assert inputs["Y"] == {"data_type": "TYPE_INVALID", "dims": []}


def test_sizes_and_times_are_numbers_and_other_long_integers_are_strings() -> None:
    config = rendered("""
        input { dims: [ -1, 9007199254740993 ] reshape { shape: [ 4 ] } }
        dynamic_batching { max_queue_delay_microseconds: 18446744073709551615
            priority_queue_policy { key: 2 value { default_timeout_microseconds: 5 } } }
        instance_group { secondary_devices { device_id: 7 } }
        optimization { cuda { graph_spec { input { key: "X" value { dim: [ 3 ] } } } } }
    """)
    assert config["input"][0]["dims"] == [-1, 9007199254740993]
    assert config["input"][0]["reshape"] == {"shape": [4]}
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 18446744073709551615
    assert config["dynamic_batching"]["priority_queue_policy"]["2"]["default_timeout_microseconds"] == 5
    assert config["instance_group"][0]["secondary_devices"][0]["device_id"] == "7"
    assert config["optimization"]["cuda"]["graph_spec"][0]["input"]["X"]["dim"] == ["3"]


def test_an_enumeration_is_its_name_and_an_unknown_one_its_number() -> None:
    config = parse_pbtxt("input { data_type: TYPE_FP32 } input { }")
    config.input[1].data_type = 99
    assert [tensor["data_type"] for tensor in json.loads(config_json(config))["input"]] == ["TYPE_FP32", 99]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "0"),
        ("-0.0", "-0.0"),
        ("1", "1"),
        ("0.3", "0.3"),
        ("0.1", "0.1"),
        ("1e-7", "1e-07"),
        ("16777217", "16777216"),
    ],
)
def test_a_float_is_written_with_its_fewest_digits(value: str, expected: str) -> None:
    config = parse_pbtxt(f"sequence_batching {{ direct {{ minimum_slot_utilization: {value} }} }}")
    assert f'"minimum_slot_utilization":{expected}}}' in config_json(config)


def test_what_is_no_number_is_protobufs_word() -> None:
    config = rendered(
        "model_metrics { metric_control { histogram_options { buckets: [ inf, -inf, nan, 0.1, 1e300 ] } } }"
    )
    options = config["model_metrics"]["metric_control"][0]["histogram_options"]
    assert options["buckets"] == ["Infinity", "-Infinity", "NaN", 0.1, 1e300]

from __future__ import annotations

import pytest
from alipes.config.override import parse_override
from alipes.errors import ConfigError


def test_names_are_read_in_both_spellings_and_enums_in_any_case() -> None:
    config = parse_override(
        '{"maxBatchSize": 3, "input": [{"name": "X", "data_type": "type_fp32", "dims": ["2", 3]}],'
        '"dynamic_batching": {"priority_queue_policy": {"5": {"timeout_action": "Delay"}}},'
        '"parameters": {"k": {"string_value": "v"}}, "metric_tags": {"a": "b"}}'
    )
    assert config.max_batch_size == 3
    assert (config.input[0].data_type, list(config.input[0].dims)) == (11, [2, 3])
    assert config.dynamic_batching.priority_queue_policy[5].timeout_action == 1
    assert config.parameters["k"].string_value == "v"
    assert config.metric_tags["a"] == "b"


def test_null_counts_as_absent() -> None:
    assert parse_override('{"name": null, "input": null}') == parse_override("{}")
    assert parse_override('{"input": [null]}') == parse_override("{}")


def test_one_value_stands_for_a_list_of_it() -> None:
    config = parse_override('{"input": {"name": "X", "dims": 3}, "version_policy": {"specific": {"versions": "2"}}}')
    assert [(tensor.name, list(tensor.dims)) for tensor in config.input] == [("X", [3])]
    assert list(config.version_policy.specific.versions) == [2]


@pytest.mark.parametrize(
    "text",
    [
        '{sequence_batching: {direct: {}}, "name": "a: b"}',
        "{'sequence_batching': {'direct': {}}, 'name': 'a: b'}",
        '{"sequence_batching":{direct :{}},name:"a: b"}',
    ],
)
def test_keys_may_lack_their_quotes(text: str) -> None:
    config = parse_override(text)
    assert config.sequence_batching.HasField("direct")
    assert config.name == "a: b"


def test_what_is_no_json_either_way_is_shown_as_it_was_sent() -> None:
    with pytest.raises(ConfigError, match=r"Expecting property name enclosed in double quotes: line 1 column 2"):
        parse_override("{name: 3")


@pytest.mark.parametrize(("text", "number"), [("TYPE-FP32", 11), ("type_fp32", 11), ("11", 11)])
def test_the_value_of_an_enumeration_has_several_spellings(text: str, number: int) -> None:
    assert parse_override(f'{{"input": [{{"data_type": "{text}"}}]}}').input[0].data_type == number


@pytest.mark.parametrize(("text", "value"), [("true", True), ("Yes", True), ("1", True), ("F", False), ("no", False)])
def test_yes_and_no_may_be_texts(text: str, value: bool) -> None:
    assert parse_override(f'{{"input": [{{"optional": "{text}"}}]}}').input[0].optional is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"input": [{"name": "X", "data_type": "FP32"}]}',
            '(input[0].data_type): invalid value "FP32" for type type.googleapis.com/inference.DataType',
        ),
        (
            '{"dynamic_batching": {}, "sequence_batching": {}}',
            ": invalid value oneof field 'scheduling_choice' is already set. Cannot set 'sequence_batching' for type "
            "oneof",
        ),
        ('{"max_batch_sise": 2}', ": invalid name max_batch_sise: Cannot find field."),
        ('{"parameters": {"k": {"value": "v"}}}', '(parameters["k"]): invalid name value: Cannot find field.'),
    ],
)
def test_an_error_is_in_tritons_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_override(text)
    assert str(caught.value) == f"Invalid config override: {message}"


def test_an_unknown_name_brings_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_override('{"max_batch_sise": 2}')
    assert (caught.value.key, caught.value.hint) == ("max_batch_sise", "did you mean 'max_batch_size'?")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_batch_size: 2",
        "[]",
        "null",
        "3",
        '{"max_batch_size": "many"}',
        '{"max_batch_size": 1.5}',
        '{"max_batch_size": 99999999999}',
        '{"name": 3}',
        '{"name": "\\ud800"}',
        '{"input": [3]}',
        '{"name": ["m"]}',
        '{"input": {"optional": "maybe"}}',
        '{"input": {"data_type": "123456789012345"}}',
        '{"input": [[]]}',
        '{"input": "X"}',
        '{"parameters": []}',
        '{"parameters": {"k": "v"}}',
        '{"metric_tags": {"k": 1}}',
        '{"dynamic_batching": []}',
        '{"dynamic_batching": {"priority_queue_policy": {"x": {}}}}',
        '{"version_policy": {"all": 1}}',
        '{"input": [{"dims": [{}]}]}',
        '{"input":' + "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_anything_else_is_refused_with_one_clear_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^Invalid config override: "):
        parse_override(text)

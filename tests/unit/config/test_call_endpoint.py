"""The parameter `endpoint` of Python models."""

from __future__ import annotations

import json

import pytest
from alipes.config.call_endpoint import RESERVED_NAMES, has_call_endpoint, read_call_endpoint
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

NOTHING_MORE = {"whole": False, "explain": False, "predict": False}


def config(endpoint: str, more: str = "", name: str = "m") -> ModelConfig:
    made = parse_pbtxt(f'name: "{name}" backend: "python" {more}')
    made.parameters["endpoint"].string_value = endpoint
    return made


@pytest.mark.parametrize(
    ("text", "methods", "stream"),
    [
        ("{}", ["POST"], False),
        (' {"methods": ["GET", "POST", "GET"]}', ["GET", "POST"], False),
        ('{"stream": true, "methods": ["PUT"]}', ["PUT"], True),
    ],
)
def test_an_object_is_an_endpoint(text: str, methods: list[str], stream: bool) -> None:
    made = config(text, "model_transaction_policy { decoupled: true }" if stream else "")
    assert has_call_endpoint(made)
    expected = {"methods": methods, "stream": stream, "head": True} | NOTHING_MORE
    assert read_call_endpoint(made) == expected


@pytest.mark.parametrize("member", ["whole", "explain"])
def test_a_model_may_take_requests_of_the_protocols_as_calls(member: str) -> None:
    expected = {"methods": ["POST"], "stream": False, "head": True} | NOTHING_MORE
    assert read_call_endpoint(config(f'{{"{member}": true}}')) == expected | {member: True}


@pytest.mark.parametrize("text", ["", "http://there:80/v1", "[]", "null", "POST"])
def test_any_other_text_is_the_models_own(text: str) -> None:
    assert not has_call_endpoint(config(text))
    assert read_call_endpoint(config(text)) is None
    assert read_call_endpoint(parse_pbtxt('name: "m"')) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is no JSON object"),
        ('{"method": ["POST"]}', "unknown member 'method'; did you mean 'methods'?"),
        ('{"methods": []}', r"'methods' must be a list of some of GET, POST, PUT, PATCH, DELETE, got \[\]"),
        ('{"methods": ["post"]}', "'methods' must be a list"),
        ('{"methods": "POST"}', "'methods' must be a list"),
        ('{"methods": [["POST"]]}', "'methods' must be a list"),
        ('{"stream": 1}', "'stream' must be true or false, got 1"),
        ('{"head": null}', "'head' must be true or false, got null"),
        ('{"whole": "yes"}', "'whole' must be true or false, got \"yes\""),
        ('{"stream": true}', "'stream' is true, but the model_transaction_policy says decoupled: false"),
        ('{"a": ' * 100_000, "it is no JSON object"),
    ],
)
def test_an_object_of_another_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        read_call_endpoint(config(text))
    assert caught.value.key == "parameters.endpoint"
    assert "model 'm'" in str(caught.value)


def test_a_stream_needs_a_decoupled_model_and_the_reverse() -> None:
    with pytest.raises(ConfigError, match="set 'stream' to true"):
        read_call_endpoint(config("{}", "model_transaction_policy { decoupled: true }"))


def test_calls_belong_to_no_sequence() -> None:
    with pytest.raises(ConfigError, match="belong to no sequence"):
        read_call_endpoint(config("{}", "sequence_batching { }"))


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_a_path_of_the_server_is_no_endpoint(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'/{name}' is a path of the server's own"):
        read_call_endpoint(config(json.dumps({}), name=name))

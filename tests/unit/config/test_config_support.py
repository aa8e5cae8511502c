from __future__ import annotations

from typing import Any

import pytest
from alipes.config.load import parse_flags
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.support import check_support, missing_servants
from alipes.errors import ConfigError

LIMITED = 'name: "m" instance_group { rate_limiter { resources { name: "R" count: 1 } } }'


def test_what_normalisation_adds_gives_no_notice(config: Any) -> None:
    normalize(config)
    normalize_instance_groups(config, "cpu")
    assert check_support(config) == []


def test_each_ignored_field_gives_its_notice_once() -> None:
    config = parse_pbtxt("""
        name: "m"
        instance_group [ { host_policy: "a" }, { host_policy: "b" } ]
        optimization { cuda { graphs: true busy_wait_events: true } }
    """)
    assert check_support(config) == [
        "field 'instance_group.host_policy' of model 'm' is ignored: instances run where the system puts them",
        "field 'optimization.cuda' of model 'm' is ignored: no engine here has such a setting",
    ]


def test_a_refused_field_at_its_default_is_no_matter() -> None:
    config = parse_pbtxt("""
        name: "m" model_transaction_policy { decoupled: false } response_cache { enable: false }
        dynamic_batching { preserve_ordering: false priority_levels: 0 } input { allow_ragged_batch: false }
        model_operations { } model_repository_agents { }
    """)
    assert check_support(config) == []


@pytest.mark.parametrize(
    ("text", "flag", "field"),
    [
        (LIMITED, "--rate-limit=execution_count", "instance_group.rate_limiter"),
        ('name: "m" response_cache { enable: true }', "--cache-config=local,size=1", "response_cache"),
    ],
)
def test_fields_whose_flag_is_missing_give_a_notice(text: str, flag: str, field: str) -> None:
    config = parse_pbtxt(text)
    (notice,) = missing_servants(config, parse_flags(["models"], {}))
    assert notice.startswith(f"{field} of model 'm' does nothing: start the server with {flag[:14]}")
    assert missing_servants(config, parse_flags(["models", flag], {})) == []


def test_what_is_refused_wins_over_what_is_ignored() -> None:
    config = parse_pbtxt(
        'name: "m" cc_model_filenames { key: "7.5" value: "x" } model_operations { op_library_filename: "l" }'
    )
    with pytest.raises(ConfigError, match="model_operations"):
        check_support(config)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('input { name: "X" allow_ragged_batch: true }', "input.allow_ragged_batch of 'X'"),
        ('batch_input { target_name: "N" source_input: "X" }', "batch_input"),
        ('batch_output { target_name: "Y" source_input: "X" }', "batch_output"),
    ],
)
def test_what_is_made_of_a_whole_batch_is_refused_beside_sequences(text: str, wanted: str) -> None:
    check_support(parse_pbtxt(f'name: "m" dynamic_batching {{ }} {text}'))
    if "ragged" in wanted:  # a Python model gets each request's tensors separately
        check_support(parse_pbtxt(f'name: "m" backend: "python" sequence_batching {{ }} {text}'))
    with pytest.raises(ConfigError) as refused:
        check_support(parse_pbtxt(f'name: "m" sequence_batching {{ }} {text}'))
    assert f"model 'm' has sequence_batching and {wanted}, which are not offered together" in str(refused.value)

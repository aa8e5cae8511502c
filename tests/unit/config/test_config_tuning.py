"""The parameters of a model that tunes itself: what they say, their defaults, and what is refused."""

from __future__ import annotations

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.schema import ModelConfig
from alipes.config.tuning import read_tuning
from alipes.errors import ConfigError

_GROUPS = "instance_group [ { name: 'a' count: 2 } , { name: 'b' count: 1 }, { name: 'c' count: 4 passive: true } ]"


def config(more: str = "dynamic_batching { }", rows: int = 16, /, **parameters: str) -> ModelConfig:
    made = parse_pbtxt(f'name: "m" max_batch_size: {rows} {_GROUPS} {more}')
    for key, text in parameters.items():
        made.parameters[f"tuning.{key}"].string_value = text
    return made


def test_a_model_that_says_nothing_is_not_tuned() -> None:
    made = config()
    made.parameters["endpoint"].string_value = "{}"
    assert read_tuning(made) is None


def test_an_objective_alone_brings_the_limits_of_the_model() -> None:
    assert read_tuning(config(objective_p99_ms="20")) == {
        "objective_p99_us": 20_000,
        "max_queue_delay_us": 10_000,
        "max_batch_size": 16,
        "max_instances": 0,
        "period_ms": 1000,
    }


def test_each_limit_can_be_set() -> None:
    made = config(
        objective_p99_ms="2.5", max_queue_delay_us="2500", max_batch_size="8", max_instances="3", period_ms="50"
    )
    assert read_tuning(made) == {
        "objective_p99_us": 2_500,
        "max_queue_delay_us": 2_500,
        "max_batch_size": 8,
        "max_instances": 3,
        "period_ms": 50,
    }


def test_the_delay_of_the_configuration_is_where_it_begins() -> None:
    made = config("dynamic_batching { max_queue_delay_microseconds: 15000 }", objective_p99_ms="20")
    tuning = read_tuning(made)
    assert tuning is not None
    assert tuning["max_queue_delay_us"] == 15_000


@pytest.mark.parametrize(
    "text", ["", "0", "0.09", "60001", "-1", "1e3", "20ms", " 20", "1_0", "٢٠", "nan", "2.", "9" * 99]
)
def test_an_objective_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"milliseconds from 0\.1 to 60000, such as 20 or 2\.5, got") as caught:
        read_tuning(config(objective_p99_ms=text))
    assert caught.value.key == "parameters.tuning.objective_p99_ms"
    assert "model 'm'" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "low", "high"),
    [
        ("max_queue_delay_us", "20001", 0, 20_000),
        ("max_queue_delay_us", "1.5", 0, 20_000),
        ("max_batch_size", "0", 1, 16),
        ("max_batch_size", "17", 1, 16),
        ("max_instances", "4", 1, 3),
        ("max_instances", "-1", 1, 3),
        ("period_ms", "49", 50, 60_000),
        ("period_ms", "ever", 50, 60_000),
    ],
)
def test_a_limit_out_of_bounds_is_refused(key: str, text: str, low: int, high: int) -> None:
    with pytest.raises(ConfigError, match=f"expected an integer from {low} to {high}, got '{text}'") as caught:
        read_tuning(config(objective_p99_ms="20", **{key: text}))
    assert caught.value.key == f"parameters.tuning.{key}"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (config(objective_p99_ms="20", max_batchsize="3"), "did you mean 'tuning.max_batch_size'?"),
        (config(objective_p99_ms="20", x="3"), "there is no such parameter"),
        (config(max_batch_size="3"), "nothing is: add 'tuning.objective_p99_ms', or remove it"),
        (config("", objective_p99_ms="20"), r"add dynamic_batching \{ \} and a max_batch_size, or remove it"),
        (
            config("dynamic_batching { }", 0, objective_p99_ms="20"),
            r"add dynamic_batching \{ \} and a max_batch_size, or remove it",
        ),
        (config("sequence_batching { }", objective_p99_ms="20"), "forms no batches that could be tuned"),
        (
            config("dynamic_batching { preferred_batch_size: [ 4 ] }", objective_p99_ms="20"),
            "remove dynamic_batching.preferred_batch_size",
        ),
        (
            config("dynamic_batching { } model_transaction_policy { decoupled: true }", objective_p99_ms="20"),
            "a decoupled model has no one answer to time",
        ),
        (
            config(
                "dynamic_batching { max_queue_delay_microseconds: 9 }", objective_p99_ms="20", max_queue_delay_us="8"
            ),
            "max_queue_delay_microseconds is 9, the limit 8; shorten the one or raise the other",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused(made: ModelConfig, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_tuning(made)

"""Drives every row of the table of parameters."""

from __future__ import annotations

import pytest
from alipes.config.parameters import PARAMETERS, EngineParameters, Parameter, read_parameters
from alipes.errors import ConfigError

DEFAULTS = read_parameters({}, "m")


def sample(row: Parameter) -> tuple[str, str]:
    value = "0" if row.key == "enable_mem_arena" else "1"
    return row.key.replace("*", "some.entry"), value


def test_no_parameters_give_the_defaults() -> None:
    assert EngineParameters(0, 0, parallel=False, memory_arena=True, session_config={}, notices=()) == DEFAULTS


@pytest.mark.parametrize("row", [row for row in PARAMETERS if row.status == "works"], ids=lambda row: row.key)
def test_a_parameter_that_works_is_read(row: Parameter) -> None:
    key, value = sample(row)
    made = read_parameters({key: value}, "m")
    assert made != DEFAULTS
    assert made.notices == ()


@pytest.mark.parametrize("row", [row for row in PARAMETERS if row.status == "ignored"], ids=lambda row: row.key)
def test_an_ignored_parameter_gives_one_notice(row: Parameter) -> None:
    key, value = sample(row)
    made = read_parameters({key: value}, "m")
    assert made.notices == (f"parameter '{key}' of model 'm' is ignored: {row.note}",)


def test_an_unknown_parameter_gives_one_notice() -> None:
    assert read_parameters({"colour": "blue"}, "m").notices == (
        "parameter 'colour' of model 'm' is ignored: the backend knows no such key",
    )


def test_each_parameter_sets_its_own_field() -> None:
    made = read_parameters(
        {
            "intra_op_thread_count": "3",
            "inter_op_thread_count": "2",
            "execution_mode": "1",
            "enable_mem_arena": "0",
            "session.dynamic_block_base": "4",
        },
        "m",
    )
    assert made == EngineParameters(3, 2, True, False, {"session.dynamic_block_base": "4"}, ())


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("intra_op_thread_count", "many"),
        ("intra_op_thread_count", "-1"),
        ("intra_op_thread_count", "1025"),
        ("intra_op_thread_count", "9" * 30),
        ("execution_mode", "2"),
        ("enable_mem_arena", ""),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"parameter '{key}' of model 'm' must be an integer from 0 to") as caught:
        read_parameters({key: text}, "m")
    assert caught.value.key == f"parameters.{key}"

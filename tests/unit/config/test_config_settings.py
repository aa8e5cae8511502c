"""Drives every row of the table of settings."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.config.load import parse_flags
from alipes.config.settings import SETTINGS, Setting
from alipes.errors import ConfigError

SAMPLES = {"int": ("9", 9), "bool": ("false", False), "seconds": ("1.5", 1.5), "str": ("some", "some")}


def text_of(row: Setting) -> tuple[str, Any]:
    """The flag with a value that differs from the default, and the value."""
    text, value = ("true", True) if row.default is False else SAMPLES[row.kind]
    return f"--{row.flag}={row.scope}{',' if row.scope else ''}{row.key}={text}", value


def rows(status: str) -> list[Any]:
    return [pytest.param(row, id=f"{row.scope}-{row.key}") for row in SETTINGS if row.status == status]


@pytest.mark.parametrize("row", rows("works"))
def test_a_setting_that_works_lands_in_its_option(row: Setting) -> None:
    flag, expected = text_of(row)
    landed: Any = parse_flags(["models", flag], {})
    for name in row.option.split("."):
        landed = getattr(landed, name)
    assert landed == expected


@pytest.mark.parametrize("row", rows("ignored"))
def test_an_ignored_setting_gives_one_notice(row: Setting) -> None:
    flag, _ = text_of(row)
    assert parse_flags(["models", flag], {}).notices == (f"{flag} is ignored: {row.ignored}",)


@pytest.mark.parametrize("row", rows("refused"))
def test_a_refused_setting_is_refused_by_name(row: Setting) -> None:
    flag, _ = text_of(row)
    with pytest.raises(ConfigError, match=f"{row.key} is not supported: {row.refused}"):
        parse_flags(["models", flag], {})
    default = str(row.default).lower()
    assert parse_flags(["models", f"--{row.flag}={row.key}={default}"], {}).notices == ()


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'onnxruntime,default-max-batch-sise'") as caught:
        parse_flags(["models", "--backend-config=onnxruntime,default-max-batch-sise=3"], {})
    assert caught.value.hint == "did you mean 'default-max-batch-size'?"


def test_a_setting_of_a_backend_that_is_not_offered_gives_a_notice() -> None:
    flag = "--backend-config=pytorch,some=1"
    assert parse_flags(["models", flag], {}).notices == (f"{flag} is ignored: no such backend is offered",)


@pytest.mark.parametrize("text", ["", "counter_latencies", "=true", "a,=1"])
def test_a_setting_has_a_key_and_a_value(text: str) -> None:
    with pytest.raises(ConfigError, match="expected <key>=<value>"):
        parse_flags(["models", f"--metrics-config={text}"], {})


def test_the_last_setting_wins() -> None:
    flags = [f"--backend-config=default-max-batch-size={size}" for size in (2, 8)]
    assert parse_flags(["models", *flags], {}).model.default_max_batch_size == 8

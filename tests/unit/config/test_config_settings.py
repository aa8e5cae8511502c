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
    chosen = [row for row in SETTINGS if row.status == status and not row.key.startswith("summary_")]
    chosen = [row for row in chosen if row.flag != "trace-config"]  # those two are tested on their own
    return [pytest.param(row, id=f"{row.scope}-{row.key}") for row in chosen]


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


@pytest.mark.parametrize(
    ("flags", "quantiles"),
    [
        ((), ()),
        (("summary_quantiles=0.5:0.1",), ()),
        (("summary_latencies=true",), (0.5, 0.9, 0.95, 0.99, 0.999)),
        (("summary_latencies=true", "summary_quantiles=0.5:0.05,0.9:0.01"), (0.5, 0.9)),
        (("summary_latencies=true", "summary_quantiles=1:0"), (1.0,)),
    ],
)
def test_summaries_have_the_quantiles_of_the_flag(flags: tuple[str, ...], quantiles: tuple[float, ...]) -> None:
    options = parse_flags(["models", *(f"--metrics-config={flag}" for flag in flags)], {})
    assert options.summary_quantiles == quantiles


@pytest.mark.parametrize("text", ["0.5", "0.5:", "1.5:0.1", "-0.5:0.1", "0.5:0.1,", "nan:0"])
def test_quantiles_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected summary_quantiles=<quantile>:<error>,\.\.\. from 0 to 1"):
        parse_flags(["models", f"--metrics-config=summary_quantiles={text}"], {})


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'onnxruntime,default-max-batch-sise'") as caught:
        parse_flags(["models", "--backend-config=onnxruntime,default-max-batch-sise=3"], {})
    assert caught.value.hint == "did you mean 'default-max-batch-size'?"


def test_a_setting_of_a_backend_that_is_not_offered_gives_a_notice() -> None:
    flag = "--backend-config=pytorch,some=1"
    assert parse_flags(["models", flag], {}).notices == (f"{flag} is ignored: no such backend is offered",)


@pytest.mark.parametrize("text", ["", "counter_latencies", "counter_latencies=", "=true", "a,=1"])
def test_a_setting_has_a_key_and_a_value(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--metrics-config option format is <setting>=<value>\. Got"):
        parse_flags(["models", f"--metrics-config={text}"], {})


def test_the_last_setting_wins() -> None:
    flags = [f"--backend-config=default-max-batch-size={size}" for size in (2, 8)]
    assert parse_flags(["models", *flags], {}).model.default_max_batch_size == 8


@pytest.mark.parametrize(
    ("flags", "rows"),
    [
        (["models"], 4),
        (["--model-store=models"], 1024),
        (["--model-list=models.json", "--model-store=models", "--model-control-mode=poll"], 1024),
        (["--model-store=models", "--backend-config=default-max-batch-size=4"], 4),
        (["--model-store=models", "--backend-config=onnxruntime,default-max-batch-size=8"], 1024),
    ],
)
def test_bare_models_take_many_rows_unless_a_setting_says_otherwise(flags: list[str], rows: int) -> None:
    assert parse_flags(flags, {}).model.default_max_batch_size == rows

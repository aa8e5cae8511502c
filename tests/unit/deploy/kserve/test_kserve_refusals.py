"""What a description of KServe may not say: every fault is named at once, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from alipes.deploy.kserve.reading import described
from alipes.errors import ConfigError
from support.kserve_values import IRIS, REFUSED, VALUE_SETS

pytestmark = pytest.mark.extra("deploy")


@pytest.mark.parametrize("name", VALUE_SETS)
def test_a_description_says_what_was_read(name: str) -> None:
    description = described(VALUE_SETS[name])
    assert described(msgspec.to_builtins(description)) == description


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(name: str) -> None:
    values, message, _ = REFUSED[name]
    with pytest.raises(ConfigError) as refused:
        described(values)
    assert str(refused.value).splitlines() == [message]


def test_all_faults_are_named_with_their_places(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "mode": "Serverless",
        "predictor": {"format": "pickle", "storage": {"uri": 1}, "nonsense": 2},
        "canaries": [{"name": "a", "percent": 1}, {"name": "B", "percent": 200, "storage": {}}],
        "models": {"items": ["one"]},
    }
    with pytest.raises(ConfigError) as refused:
        described(values, tmp_path / "values.yaml")
    assert str(refused.value).splitlines() == [
        "mode: Invalid enum value 'Serverless'",
        "predictor.format: Invalid enum value 'pickle'",
        "predictor.storage.uri: Expected `str`, got `int`",
        "predictor: Object contains unknown field `nonsense`",
        "canaries[0]: Object missing required field `storage`",
        "canaries[1].name: Expected `str` matching regex '^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$'",
        "canaries[1].percent: Expected `int` <= 100",
        "models.items[0]: Expected `object`, got `str`",
    ]
    assert refused.value.explain().startswith(f"{tmp_path}/values.yaml: mode: ")


def test_several_parts_that_do_not_go_together_are_named_together() -> None:
    values = {
        "predictor": IRIS | {"canaryPercent": 1, "scaling": {"least": 0, "metric": "rps"}},
        "account": {"name": "a", "secrets": ["b"]},
    }
    with pytest.raises(ConfigError) as refused:
        described(values)
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        "predictor.scaling.least",
        "predictor.scaling.metric",
        "predictor.canaryPercent",
        "account",
    ]


def test_many_faults_are_counted() -> None:
    with pytest.raises(ConfigError) as refused:
        described({"canaries": [{}] * 30})
    assert str(refused.value).splitlines()[-1] == "and 10 more"

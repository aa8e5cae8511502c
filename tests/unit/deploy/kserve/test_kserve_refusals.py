"""What a description of KServe may not say: every fault is named at once, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from alipes.deploy.kserve.reading import described
from alipes.errors import ConfigError
from support.kserve_values import IRIS, REFUSED, VALUE_SETS

FORMATS = "lightgbm, mlflow, onnx, pytorch, sklearn, tensorflow, triton, xgboost"
INSTEAD = "; export the model as one of these, or serve it with a runtime of KServe's own"
KPB = "predictor.scaling.kind: 'kpb' is none of external, hpa, keda, kpa, none; did you mean kpa?"

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
        "mode: 'Serverless' is none of Knative, Standard",
        f"predictor.format: 'pickle' is none of {FORMATS}{INSTEAD}",
        "predictor.storage.uri: Expected `str`, got `int`",
        "predictor: Object contains unknown field `nonsense`",
        "canaries[0]: Object missing required field `storage`",
        "canaries[1].name: Expected `str` matching regex '^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$'",
        "canaries[1].percent: Expected `int` <= 100",
        "models.items[0]: Expected `object`, got `str`",
    ]
    assert refused.value.explain().startswith(f"{tmp_path}/values.yaml: mode: ")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"predictor": {"format": "onx"}},
            f"predictor.format: 'onx' is none of {FORMATS}; did you mean onnx?{INSTEAD}",
        ),
        (
            {"models": {"items": [{"name": "a", "uri": "s3://a", "memory": "1Gi", "format": "pmml"}] * 12}},
            f"models.items[0].format: 'pmml' is none of {FORMATS}{INSTEAD}",
        ),
        ({"predictor": {"scaling": {"kind": "kpb"}}}, KPB),
        (
            {"graphs": [{"name": "g", "nodes": {"root": {"kind": "Tree", "steps": [{"service": "a"}]}}}]},
            "graphs[0].nodes[...].kind: 'Tree' is none of Ensemble, Sequence, Splitter, Switch",
        ),
        (
            {"nodes": {"tolerations": [{"key": "a"}, {"key": "b", "effect": "Never"}]}},
            "nodes.tolerations[1].effect: 'Never' is none of NoExecute, NoSchedule, PreferNoSchedule",
        ),
    ],
)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        described(values)
    assert str(refused.value).splitlines()[0] == message


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

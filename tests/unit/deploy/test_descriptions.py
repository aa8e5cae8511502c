"""What a description may say, and what is answered to the rest: one sentence with the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from alipes.deploy import described, read_values
from alipes.deploy.reading import with_settings
from alipes.deploy.reference import PAGES, page
from alipes.deploy.repository_place import check_repository
from alipes.errors import ConfigError
from support.checkout import ROOT
from support.deployment_values import VALUE_SETS

pytestmark = pytest.mark.extra("deploy")


@pytest.mark.parametrize("name", VALUE_SETS)
def test_a_description_says_what_was_read(name: str) -> None:
    description = described(VALUE_SETS[name])
    assert described(msgspec.to_builtins(description)) == description


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a word for a number": ({"resources": {"gpus": "many"}}, "resources.gpus: Expected `int`, got `str`"),
    "an unknown name": ({"resources": {"gpu": 1}}, "resources: Object contains unknown field `gpu`"),
    "too few": ({"replicas": -1}, "replicas: Expected `int` >= 0"),
    "a list for a text": ({"image": ["a"]}, "image: Expected `str`, got `array`"),
    "in a list": (
        {"tolerations": [{"key": "a", "operator": "Is"}]},
        "tolerations[0].operator: 'Is' is none of Equal, Exists",
    ),
    "more at least than at most": (
        {"scaling": {"kind": "hpa", "least": 4, "most": 2}},
        "scaling: at least 4 and at most 2 servers",
    ),
    "scaled by nothing": (
        {"scaling": {"kind": "keda", "cpuPercent": 0}},
        "scaling: say at which cpuPercent, pendingRequests, concurrency or waitMs servers are added",
    ),
    "one port twice": ({"ports": {"http": 8001}}, "ports: http, grpc and metrics need three ports"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    values, message = REFUSED[name]
    file = tmp_path / "values.yaml"
    with pytest.raises(ConfigError) as refused:
        described(values, file)
    assert str(refused.value) == message
    assert refused.value.explain() == f"{file}: {message}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["resources.gpus=2", "replicas=3"], {"resources": {"gpus": 2}, "replicas": 3}),
        (["environment.A=1", "environment.B="], {"environment": {"A": "1", "B": ""}}),
        (["streams=true", "arguments=[--log-verbose=1, x]"], {"streams": True, "arguments": ["--log-verbose=1", "x"]}),
        (["tolerations=[{key: a}]"], {"tolerations": [{"key": "a"}]}),
    ],
    ids=str,
)
def test_settings_are_read_as_what_they_stand_for(settings: list[str], expected: dict[str, Any]) -> None:
    assert described(with_settings({}, settings)) == described(expected)


def test_settings_lie_over_the_file_and_leave_it_alone() -> None:
    values = {"resources": {"cpu": "2", "gpus": 1}}
    assert with_settings(values, ["resources.gpus=4"]) == {"resources": {"cpu": "2", "gpus": "4"}}
    assert values == {"resources": {"cpu": "2", "gpus": 1}}


@pytest.mark.parametrize("setting", ["replicas", "=1", "a..b=1", "name.part=1"])
def test_a_setting_that_is_none_says_what_is_expected(setting: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        with_settings({"name": "a"}, [setting])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "this is no YAML"),
        ("- 1", "expected values by their names"),
        ("a: 1\n---\nb: 2", "expected values by their names"),
        ("x: " + "a" * (1 << 20), "at most 1048576 bytes"),
    ],
    ids=["broken", "a list", "two documents", "huge"],
)
def test_a_file_of_no_values_says_so(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        read_values(file)
    assert str(file) in refused.value.explain()


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("# all as it is\n")
    assert read_values(tmp_path / "values.yaml") == {}


@pytest.mark.parametrize("path", PAGES)
def test_the_reference_page_has_every_value(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == page(PAGES[path])


@pytest.mark.parametrize("repository", ["models", "./models", "pvc://", "pvc://claim/../other", "http://host/models"])
def test_models_that_no_pod_can_reach_are_refused(repository: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_repository(repository)
    assert "repository" in str(refused.value)

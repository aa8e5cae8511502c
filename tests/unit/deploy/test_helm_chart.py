"""The chart, by Helm's own engine: it gives what the plain writer gives, and refuses what the description refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy import described, kubernetes_objects
from alipes.deploy.helm.chart import chart_files
from alipes.deploy.yaml_text import documents_of
from alipes.errors import ConfigError
from support.deployment_values import VALUE_SETS
from support.helm_engine import HelmEngine, Refused

pytestmark = pytest.mark.extra("deploy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chart whose values are the defaults."""
    return written(tmp_path_factory.mktemp("charts") / "alipes", {})


@pytest.fixture(scope="module")
def helm() -> Iterator[HelmEngine]:
    with HelmEngine() as engine:
        yield engine


def written(folder: Path, values: dict[str, Any]) -> Path:
    for name, text in chart_files(described(values), "0.1.0").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def rendered(helm: HelmEngine, folder: Path, values: dict[str, Any]) -> list[Any]:
    texts = [text for name, text in helm.render(folder, values).items() if not name.endswith(".txt")]
    return [document for text in texts for document in documents_of(text, "chart")]


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_gives_what_the_plain_writer_gives(helm: HelmEngine, folder: Path, name: str) -> None:
    values = VALUE_SETS[name]
    plain = kubernetes_objects(described(values))
    assert by_name(rendered(helm, folder, values)) == by_name(plain)


def test_values_that_were_chosen_are_the_charts_own(helm: HelmEngine, tmp_path: Path) -> None:
    values = VALUE_SETS["gpus"]
    chart = written(tmp_path / "alipes", values)
    assert by_name(rendered(helm, chart, {})) == by_name(kubernetes_objects(described(values)))


def test_helm_has_nothing_to_say_against_the_chart(helm: HelmEngine, folder: Path) -> None:
    said = helm.lint(folder, strict=True, kube_version="v1.37.0")
    assert [line["error"] for line in said["messages"]] == ["icon is recommended"]
    assert said["errors"] == []


@pytest.mark.parametrize(
    "values",
    [
        {"resources": {"gpus": "many"}},
        {"resources": {"gpu": 1}},
        {"replicas": -1},
        {"service": {"type": "Balancer"}},
        {"image": ""},
        {"name": "Not A Name"},
        {"scaling": {"kind": "hpa", "least": 0}},
        {"ports": {"http": 80}},
    ],
    ids=str,
)
def test_helm_refuses_the_values_that_we_refuse(helm: HelmEngine, folder: Path, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        described(values)
    with pytest.raises(Refused):
        helm.render(folder, values)


def test_the_notes_name_the_address(helm: HelmEngine, folder: Path) -> None:
    notes = helm.render(folder, {"name": "models"}, namespace="waves")["alipes/templates/NOTES.txt"]
    assert "dns:///models-servers.waves:8001" in notes

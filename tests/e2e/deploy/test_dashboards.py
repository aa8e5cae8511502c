"""The dashboard and the alerts: every question gets an answer from a real Prometheus that reads a loaded server."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alipes import Client
from alipes.deploy.dashboards.grafana import dashboard
from alipes.deploy.dashboards.panels import ROWS
from alipes.deploy.dashboards.rules import rules
from alipes.deploy.yaml_text import documents_of, yaml_of
from alipes.errors import InferError
from support.command import alipes
from support.gpus import StubGpu, StubMachine
from support.models import add_model
from support.prometheus import Prometheus, is_installed, prometheus
from support.server import ServerProcess
from support.waiting import until

pytestmark = [
    pytest.mark.extra("deploy"),
    pytest.mark.skipif(not is_installed(), reason="Prometheus is not installed: tools/install-system-tools"),
]

VARIABLES = {"$job": ".*", "$instance": ".*", "$model": ".*", "$__rate_interval": "10s"}
EXPRESSIONS = {
    f"{panel.title}: {query.legend}": query.expression
    for row in ROWS
    for panel in row.panels
    for query in panel.queries
}


def as_sent(expression: str) -> str:
    """An expression as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


class Loaded:
    """A server with a cache and GPUs, requests of every kind, and a Prometheus that reads it."""

    def __init__(self, server: ServerProcess, watcher: Prometheus) -> None:
        self._server = server
        self._watcher = watcher
        self._number = 0.0

    def send(self) -> None:
        """Some requests: new ones, some again, and one that fails."""
        with Client(f"grpc://{self._server.grpc}") as client:
            for _ in range(20):
                self._number += 1.0
                for _ in range(2):
                    client.infer("double", [[self._number, 1.0]])
            with pytest.raises(InferError):
                client.infer("double", [[1.0, 2.0]], version="7")

    def values(self, expression: str) -> list[float]:
        """The numbers of an expression now."""
        return [float(series["value"][1]) for series in self._watcher.ask(as_sent(expression))]

    def until_answered(self, expression: str) -> list[float]:
        """The numbers, once there are some and all of them are numbers, under load."""
        found: list[float] = []

        def is_answered() -> bool:
            self.send()
            found[:] = self.values(expression)
            return bool(found) and not any(math.isnan(value) for value in found)

        until(is_answered, f"no answer to {as_sent(expression)}")
        return found


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("watched")
    repository = folder / "models"
    repository.mkdir()
    add_model(repository, "double")
    (repository / "double" / "config.pbtxt").write_text("response_cache { enable: true }\n")
    machine = StubMachine(folder / "gpus", StubGpu("GPU-1"))
    words = [str(repository), "--cache-config=local,size=1048576"]
    with ServerProcess(*words, environment=dict(machine.environment)).wait_until_started() as server:
        with prometheus(folder, [server.metrics]) as watcher:
            yield Loaded(server, watcher)
        server.stop()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_panel_shows_something(loaded: Loaded, name: str) -> None:
    assert loaded.until_answered(EXPRESSIONS[name])


def test_what_a_panel_shows_is_right(loaded: Loaded) -> None:
    hits = loaded.until_answered(EXPRESSIONS["Answers from the cache: {{model}}"])
    assert 0.3 < hits[0] < 0.7  # every second request came again
    assert loaded.values(EXPRESSIONS["GPUs: {{instance}} {{gpu_uuid}}"]) == [0.25]
    assert loaded.values(EXPRESSIONS["Servers: {{version}}"]) == [1]


def test_grafana_s_own_types_read_the_dashboard() -> None:
    types: Any = import_module("grafana_foundation_sdk.models.dashboard")
    read = types.Dashboard.from_json(dashboard())
    assert [panel.title for panel in read.panels if panel.type_val != "row"] == [
        panel.title for row in ROWS for panel in row.panels
    ]
    numbers = [panel.id_val for panel in read.panels]
    assert len(set(numbers)) == len(numbers)


def test_panels_do_not_lie_over_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    words = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{words}}}", "values": values}


MODEL = {"job": "alipes", "model": "m"}
# Alert -> what happens, the minute at which it is loud, and the labels that it then has.
LOUD: dict[str, tuple[list[dict[str, str]], str, Mapping[str, str]]] = {
    "AlipesServerDown": (
        [series("up", "1 1 0 0 0 0 0 0", job="alipes", instance="a")],
        "5m",
        {"job": "alipes", "instance": "a"},
    ),
    "AlipesRequestsFail": (
        [
            series("nv_inference_request_success", "0+90x30", **MODEL),
            series("nv_inference_request_failure", "0+10x30", reason="BACKEND", **MODEL),
        ],
        "20m",
        MODEL,
    ),
    "AlipesSlow": (
        [
            series("alipes_inference_request_seconds_bucket", "0+10x30", le="1", **MODEL),
            series("alipes_inference_request_seconds_bucket", "0+100x30", le="5", **MODEL),
            series("alipes_inference_request_seconds_bucket", "0+100x30", le="+Inf", **MODEL),
        ],
        "25m",
        MODEL,
    ),
    "AlipesQueueGrows": ([series("nv_inference_pending_request_count", "0 500x30", **MODEL)], "20m", MODEL),
    "AlipesNetworkHeldUp": (
        [series("alipes_network_long_turns_total", "0+5x40", job="alipes", instance="a", thread="0")],
        "30m",
        {"job": "alipes", "instance": "a"},
    ),
}
QUIET: dict[str, list[dict[str, str]]] = {
    "AlipesServerDown": [series("up", "1 1 0 1 1 1 1 1", job="alipes", instance="a")],
    "AlipesRequestsFail": [
        series("nv_inference_request_success", "0+90x30", **MODEL),
        series("nv_inference_request_failure", "0+10x30", reason="CANCELED", **MODEL),
    ],
    "AlipesSlow": [
        series("alipes_inference_request_seconds_bucket", "0+100x30", le="0.5", **MODEL),
        series("alipes_inference_request_seconds_bucket", "0+100x30", le="+Inf", **MODEL),
    ],
    "AlipesQueueGrows": [series("nv_inference_pending_request_count", "0 50x30", **MODEL)],
    "AlipesNetworkHeldUp": [
        series("alipes_network_long_turns_total", "0 0 1 1 1 1x30", job="alipes", instance="a", thread="0")
    ],
}


def test_every_alert_is_loud_when_it_should_be_and_quiet_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml_of([rules()]), encoding="utf-8")
    described = {rule["alert"]: rule for rule in rules()["groups"][0]["rules"]}
    assert set(described) == set(LOUD) == set(QUIET)
    tests: list[dict[str, Any]] = []
    for name, (happens, when, labels) in LOUD.items():
        expected = {"exp_labels": {**labels, **described[name]["labels"]}}
        # Its sentences hold numbers, which are not compared: an expectation without them would be one of no sentences.
        alert = {"eval_time": when, "alertname": name, "exp_alerts": [expected]}
        tests.append({"interval": "1m", "input_series": happens, "alert_rule_test": [alert]})
    for name, happens in QUIET.items():
        silence = [{"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []} for minute in (5, 20, 30)]
        tests.append({"interval": "1m", "input_series": happens, "alert_rule_test": silence})
    bare = {"groups": [{"name": "alipes", "rules": [without_sentences(rule) for rule in described.values()]}]}
    (tmp_path / "bare.yaml").write_text(yaml_of([bare]), encoding="utf-8")
    cases = tmp_path / "tests.yaml"
    cases.write_text(yaml_of([{"rule_files": ["bare.yaml"], "evaluation_interval": "1m", "tests": tests}]))
    for command in (["check", "rules", str(file)], ["test", "rules", str(cases)]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def without_sentences(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in rule.items() if name != "annotations"}


def test_the_command_writes_both(tmp_path: Path) -> None:
    done = alipes("deploy", "dashboards", "--output=seen", "--slow-above=0.25", folder=tmp_path)
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "seen" / "grafana.json").read_text()) == dashboard()
    (written,) = documents_of((tmp_path / "seen" / "rules.yaml").read_text(), "rules.yaml")
    assert written == rules(latency_s=0.25)

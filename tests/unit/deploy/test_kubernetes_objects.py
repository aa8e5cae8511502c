"""What the objects say where it matters: nothing is lost at a stop, and nothing more is allowed than is needed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from alipes.deploy import described, kubernetes_objects
from alipes.errors import ConfigError
from support.checkout import ROOT
from support.deployment_values import VALUE_SETS

pytestmark = pytest.mark.extra("deploy")

FLAGS = (ROOT / "docs" / "reference" / "cli-serve.md").read_text(encoding="utf-8")


def objects(values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in kubernetes_objects(described(values))}


def pod(values: dict[str, Any]) -> dict[str, Any]:
    (workload,) = [each for (kind, _), each in objects(values).items() if kind in {"Deployment", "StatefulSet"}]
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def container(values: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod(values)["containers"]
    server: dict[str, Any] = found
    return server


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_flag_is_one_of_the_server(name: str) -> None:
    own = set(VALUE_SETS[name].get("arguments", ()))
    words = [word for word in container(VALUE_SETS[name])["args"][1:] if word not in own]
    flags = {word.partition("=")[0] for word in words}
    assert {flag for flag in flags if f"| `{flag}` |" not in FLAGS} == set()


@pytest.mark.parametrize("name", VALUE_SETS)
def test_a_pod_has_more_time_than_its_server_needs(name: str) -> None:
    found = pod(VALUE_SETS[name])
    (server,) = found["containers"]
    (drain,) = [word for word in server["args"] if word.startswith("--exit-timeout-secs=")]
    pause = server.get("lifecycle", {"preStop": {"sleep": {"seconds": 0}}})["preStop"]["sleep"]["seconds"]
    assert found["terminationGracePeriodSeconds"] > pause + int(drain.partition("=")[2]) + 1


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_selector_finds_the_pods(name: str) -> None:
    found = objects(VALUE_SETS[name])
    (workload,) = [each for (kind, _), each in found.items() if kind in {"Deployment", "StatefulSet"}]
    labels = workload["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        selector.get("matchLabels", selector)
        for each in found.values()
        for key, selector in each["spec"].items()
        if key in {"selector", "podSelector"}
    ]
    assert len(selectors) >= 4
    assert all(selector and selector.items() <= labels for selector in selectors)


@pytest.mark.parametrize("name", VALUE_SETS)
def test_a_server_may_do_nothing_but_serve(name: str) -> None:
    found = pod(VALUE_SETS[name])
    (server,) = found["containers"]
    assert found["securityContext"]["runAsNonRoot"] is True
    assert server["securityContext"]["readOnlyRootFilesystem"] is True
    assert server["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert found["automountServiceAccountToken"] is ("serviceAccount" in VALUE_SETS[name])
    read = {mount["name"] for mount in server["volumeMounts"] if mount.get("readOnly")}
    assert {mount["name"] for mount in server["volumeMounts"]} - read <= {"scratch", "shared-memory"}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_probes_ask_what_tells_started_ready_and_alive(name: str) -> None:
    server = container(VALUE_SETS[name])
    asked = {probe: server[probe]["httpGet"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert [asked[probe]["path"] for probe in asked] == ["/v2/health/ready", "/v2/health/ready", "/v2/health/live"]
    encrypted = "--http-use-ssl" in server["args"]
    assert {each["scheme"] for each in asked.values()} == {"HTTPS" if encrypted else "HTTP"}
    startup = server["startupProbe"]
    values = described(VALUE_SETS[name]).probes
    assert startup["failureThreshold"] * startup["periodSeconds"] >= values.startup_s
    assert server["livenessProbe"]["failureThreshold"] > server["readinessProbe"]["failureThreshold"]


def test_a_key_stands_in_no_object() -> None:
    server = container({"key": {"secret": "keys", "entry": "value"}})
    (variable,) = server["env"]
    assert variable == {"name": "ALIPES_API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "value"}}}
    assert "--api-key-open=health,metrics" in server["args"]
    closed = container({"key": {"secret": "keys", "open": []}})
    assert "--api-key-open=none" in closed["args"]


def test_a_scaler_alone_decides_how_many_servers_there_are() -> None:
    found = objects(VALUE_SETS["keda"])
    assert "replicas" not in found["Deployment", "alipes"]["spec"]
    assert found["ScaledObject", "alipes"]["spec"]["scaleTargetRef"]["name"] == "alipes"


def test_servers_of_streams_have_names_that_the_service_gives() -> None:
    found = objects({"name": "waves", "streams": True})
    workload = found["StatefulSet", "waves"]
    assert found["Service", workload["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"


def test_metrics_that_scale_are_metrics_of_the_server() -> None:
    known = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    scaled = str(objects(VALUE_SETS["hpa"])) + str(objects(VALUE_SETS["keda"]))
    named = set(re.findall(r"\bnv_\w+", scaled))
    assert named
    assert {name for name in named if f"`{name}`" not in known} == set()


def test_a_folder_of_this_machine_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match="a pod cannot reach the folder 'models'") as refused:
        objects({"repository": "models"})
    assert "alipes deploy image" in refused.value.explain()

"""Apps as transformer and explainer, and sizes from a measurement, as KServe's and Knative's own code takes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from alipes.autoscale import ServiceCurve, size
from alipes.config.load import parse_flags
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from support.kserve import Rendered, render
from support.kserve_values import IRIS
from support.kube import Missing
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

pytestmark = pytest.mark.extra("deploy")

Serve = Callable[..., ServerProcess]

SIZING = size(ServiceCurve((1, 2, 4, 8), (52, 95, 131, 136), (21, 24, 36, 71)), rates=(30, 900))
PREFIX = "autoscaling.knative.dev/"
PARTS = {
    "transformer": {"image": "apps:1", "app": "/app/transformer.py"},
    "explainer": {"image": "apps:1", "app": "/app/explainer.py", "arguments": ["--predictor_request_retries=0"]},
}
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "Standard": {"predictor": IRIS, **PARTS},
    "Knative": {"mode": "Knative", "predictor": IRIS, **PARTS},
    "Knative over gRPC": {"mode": "Knative", "predictor": IRIS | {"protocol": "grpc-v2"}, **PARTS},
}
SIZED: dict[str, dict[str, Any]] = {
    "Knative": {"mode": "Knative", "predictor": IRIS},
    "Knative with a window": {
        "mode": "Knative",
        "predictor": IRIS | {"annotations": {f"{PREFIX}window": "30s"}},
    },
    "KEDA": {"predictor": IRIS | {"scaling": {"kind": "keda"}}},
}
APP = """
import alipes
import numpy as np

iris = alipes.Predictor()


@alipes.model
async def shift(instances: list[list[float]]) -> dict[str, list[list[float]]]:
    rows = await iris.infer_async(np.array(instances, np.float32) + 1)
    return {"predictions": rows.tolist()}
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, Rendered]:
    """KServe's answer to each description, as if it were alone in a cluster."""
    clusters = {name: kserve_objects(described(values)) for name, values in DESCRIPTIONS.items()}
    for name, values in SIZED.items():
        clusters[f"sized: {name}"] = kserve_objects(described(values, sizing=SIZING))
    try:
        found = render(*clusters.values())
    except Missing as reason:
        pytest.skip(str(reason))
    return dict(zip(clusters, found, strict=True))


def container(answer: Rendered, component: str) -> dict[str, Any]:
    """The container of a component, in the pod of a Deployment or of a service of Knative."""
    name = f"alipes-{component}"
    services = [one for one in answer.objects if one["apiVersion"] == "serving.knative.dev/v1"]
    templates = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in services}
    templates |= {one["metadata"]["name"].removesuffix("-0"): one["spec"] for one in answer.objects if is_pod(one)}
    (found,) = [one for one in templates[name]["containers"] if one["name"] == "kserve-container"]
    server: dict[str, Any] = found
    return server


def is_pod(found: dict[str, Any]) -> bool:
    return str(found["kind"]) == "Pod"


@pytest.mark.parametrize("name", [*DESCRIPTIONS, *(f"sized: {name}" for name in SIZED)])
def test_kserve_s_own_code_takes_apps_and_sizes(answers: dict[str, Rendered], name: str) -> None:
    answer = answers[name]
    assert answer.refusals == []
    assert answer.steps["reconcile"] == 1
    if "Knative" in name:
        services = [one for one in answer.objects if one["apiVersion"] == "serving.knative.dev/v1"]
        assert len(services) == (1 if name.startswith("sized") else 3)


@pytest.mark.parametrize("component", PARTS)
@pytest.mark.parametrize(
    ("name", "host", "protocol"),
    [
        ("Standard", "alipes-predictor:9000", "grpc-v2"),
        ("Knative", "alipes-predictor.default", "v2"),
        ("Knative over gRPC", "alipes-predictor.default", "grpc-v2"),
    ],
)
def test_kserve_starts_an_app_where_its_predictor_is(
    answers: dict[str, Rendered], name: str, component: str, host: str, protocol: str
) -> None:
    server = container(answers[name], component)
    assert server["command"] == ["alipes", "serve"]
    options = parse_flags(server["args"], {})
    assert options.repository.paths == (PARTS[component]["app"],)
    assert options.repository.model_name == "alipes"
    assert (options.predictor.host, options.predictor.protocol) == (host, protocol)
    assert (options.http.port, options.grpc.port, options.metrics.port) == (8080, 9000, 8002)
    assert options.predictor.retries == (0 if component == "explainer" else None)
    assert server["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"


def test_what_kserve_starts_answers_with_the_predictor_s_model(
    answers: dict[str, Rendered], tmp_path: Path, serve: Serve
) -> None:
    add_model(tmp_path / "models", "alipes", times())
    (tmp_path / "transformer.py").write_text(APP, encoding="utf-8")
    predictor = serve(tmp_path / "models")
    for name, address in (("Standard", predictor.grpc), ("Knative", predictor.http)):
        words = [
            word.replace("/app/", f"{tmp_path}/")
            .replace("alipes-predictor:9000", address)
            .replace("alipes-predictor.default", address)
            for word in container(answers[name], "transformer")["args"]
        ]
        server = serve(*without_ports(words))
        body = json.dumps({"instances": [[1, 2]]}).encode()
        with urlopen(Request(f"http://{server.http}/v1/models/alipes:predict", body), timeout=TIMEOUT_S) as answer:
            assert json.load(answer) == {"predictions": [[4, 6]]}
        server.kill()


def without_ports(words: list[str]) -> list[str]:
    """A command line whose ports are the system's to choose; that of HTTP comes twice, ours and KServe's."""
    at = words.index("--http_port")
    assert words[at + 1] == "8080"
    rest = words[:at] + words[at + 2 :]
    return [word for word in rest if not word.partition("=")[0].endswith("-port")]


def test_knative_gets_concurrency_target_and_bounds(answers: dict[str, Rendered]) -> None:
    for name, window in (("Knative", None), ("Knative with a window", "30s")):
        answer = answers[f"sized: {name}"]
        (service,) = [one for one in answer.objects if one["apiVersion"] == "serving.knative.dev/v1"]
        template = service["spec"]["template"]
        assert template["spec"]["containerConcurrency"] == 4
        annotations = template["metadata"]["annotations"]
        wanted = {"min-scale": "1", "max-scale": "10", "target": "4", "metric": "concurrency"}
        wanted["target-utilization-percentage"] = "48"
        assert {key: annotations[PREFIX + key] for key in wanted} == wanted
        assert annotations.get(f"{PREFIX}window") == window


def test_keda_gets_the_mean_of_requests_in_a_server(answers: dict[str, Rendered]) -> None:
    scaled = answers["sized: KEDA"].only("ScaledObject")
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (1, 10)
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "prometheus"
    assert trigger["metadata"]["threshold"] == "2"
    assert trigger["metadata"]["query"] == (
        'sum(alipes_inference_concurrency{serving_kserve_io_inferenceservice="alipes"})'
    )

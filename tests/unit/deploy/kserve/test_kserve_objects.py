"""What KServe's objects say where it matters: the contract between KServe and a server."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.config.load import parse_flags
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.kserve.runtimes import FORMATS
from support.checkout import ROOT
from support.kserve_values import IRIS, VALUE_SETS

pytestmark = pytest.mark.extra("deploy")

FLAGS = (ROOT / "docs" / "reference" / "cli-serve.md").read_text(encoding="utf-8")
RUNTIMES = {"ServingRuntime", "ClusterServingRuntime"}


def objects(values: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    return [each for each in kserve_objects(described(values)) if not kinds or each["kind"] in kinds]


def service(values: dict[str, Any]) -> dict[str, Any]:
    (found,) = objects(values, "InferenceService")
    return found


def containers(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [runtime["spec"]["containers"][0] for runtime in objects(values, *RUNTIMES)]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_every_flag_is_one_of_the_server(name: str) -> None:
    words = [word for server in containers(VALUE_SETS[name]) for word in server["args"] if word.startswith("--")]
    unknown = {word.partition("=")[0] for word in words if f"| `{word.partition('=')[0]}` |" not in FLAGS}
    assert unknown == set()


def test_each_format_has_a_runtime_before_those_of_kserve() -> None:
    found = objects({"predictor": IRIS}, "ClusterServingRuntime")
    assert [each["metadata"]["name"] for each in found] == [f"alipes-{name}" for name in FORMATS]
    for each, name in zip(found, FORMATS, strict=True):
        formats = each["spec"]["supportedModelFormats"]
        assert [(one["name"], one["version"]) for one in formats] == [(name, version) for version in FORMATS[name]]
        assert {(one["autoSelect"], one["priority"]) for one in formats} == {(True, 4)}
        assert each["spec"]["protocolVersions"] == ["v1", "v2", "grpc-v2"]


def test_a_runtime_asks_for_nothing_but_a_folder_to_write() -> None:
    for server in containers({"predictor": IRIS}):
        security = server["securityContext"]
        assert security["runAsNonRoot"] is security["readOnlyRootFilesystem"] is True
        assert "runAsUser" not in security  # a cluster may choose it
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert server["volumeMounts"] == [{"name": "scratch", "mountPath": "/tmp"}]


def test_pickles_are_read_where_a_format_is_made_of_them() -> None:
    def allowed(values: dict[str, Any]) -> list[str]:
        found = objects(values, *RUNTIMES)
        names = {each["metadata"]["name"]: each["spec"]["containers"][0]["args"] for each in found}
        return [name for name, words in names.items() if any("--allow-pickles=" in word for word in words)]

    assert allowed({"predictor": IRIS}) == ["alipes-sklearn", "alipes-mlflow"]
    assert allowed(VALUE_SETS["many models"]) == ["alipes-sklearn", "alipes-mlflow", "alipes-models"]
    assert allowed({"predictor": IRIS, "runtimes": {"pickles": False}}) == []


def test_probes_and_metrics_are_where_the_server_has_them() -> None:
    for runtime in objects({"predictor": IRIS}, *RUNTIMES):
        (server,) = runtime["spec"]["containers"]
        probes = [server[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
        assert [probe["path"] for probe in probes] == ["/v2/health/ready", "/v2/health/ready", "/v2/health/live"]
        assert {probe["port"] for probe in probes} == {8080}
        assert {"--http-port=8080", "--grpc-port=9000", "--metrics-port=8002"} <= set(server["args"])
        assert [port["containerPort"] for port in server["ports"]] == [8080, 9000, 8002]
        assert runtime["spec"]["annotations"]["prometheus.kserve.io/port"] == "8002"


def test_knative_has_one_port_which_says_what_is_spoken() -> None:
    assert all("ports" not in server for server in containers(VALUE_SETS["knative"]))
    ports = [service(VALUE_SETS[name])["spec"]["predictor"]["model"]["ports"] for name in ("knative", "knative, grpc")]
    assert [[(port["name"], port["containerPort"]) for port in each] for each in ports] == [
        [("http1", 8080)],
        [("h2c", 9000)],
    ]


def test_a_server_has_more_time_to_stop_than_it_needs() -> None:
    values = {"predictor": IRIS, "pauseS": 7, "exitTimeoutS": 100}
    assert service(values)["spec"]["predictor"]["terminationGracePeriodSeconds"] > 107
    for server in containers(values):
        assert "--exit-timeout-secs=100" in server["args"]
        assert server["lifecycle"]["preStop"]["sleep"]["seconds"] == 7


def test_a_canary_names_its_container_and_a_predictor_does_not() -> None:
    spec = service(VALUE_SETS["canaries"])["spec"]
    assert [one["predictor"]["model"]["name"] for one in spec["canary"]] == ["kserve-container"] * 2
    assert "name" not in spec["predictor"]["model"]
    assert [one["trafficPercent"] for one in spec["canary"]] == [10, 0]
    models = [one["predictor"]["model"] for one in (*spec["canary"], spec)]
    assert [model["storageUri"] for model in models] == ["gs://bucket/iris-2", "s3://bucket/iris-3", "gs://bucket/iris"]
    (secret,) = service(VALUE_SETS["canary of a secret"])["spec"]["canary"]
    assert secret["predictor"]["model"]["storage"] == {"key": "minio", "path": "models/2"}


def test_the_batcher_is_the_servers_own() -> None:
    spec = service(VALUE_SETS["batcher"])["spec"]["predictor"]
    assert "batcher" not in spec
    model = parse_flags(["--model-store=/mnt/models", *spec["model"]["args"]], {}).model
    assert (model.default_max_batch_size, model.default_max_queue_delay_us) == (16, 20_000)
    assert model.default_max_batch_bytes == 0  # as many rows as were asked for, however large they are


def test_the_longest_wait_of_a_batcher_is_one_that_the_server_takes() -> None:
    longest = {"predictor": IRIS | {"batcher": {"maxLatencyMs": 86_400_000}}}
    flags = service(longest)["spec"]["predictor"]["model"]["args"]
    assert parse_flags(["models", *flags], {}).model.default_max_queue_delay_us == 86_400_000_000


def test_the_log_of_payloads_is_the_servers_own() -> None:
    spec = service(VALUE_SETS["payload log"])["spec"]["predictor"]
    assert "logger" not in spec
    payloads = parse_flags(["models", *spec["model"]["args"]], {}).payloads
    assert (payloads.url, payloads.mode, payloads.sample, payloads.headers) == (
        "http://sink/",
        "all",
        0.01,
        ("x-team",),
    )
    assert "name" in payloads.redacted
    spec = service(VALUE_SETS["payload log of files"])["spec"]["predictor"]
    payloads = parse_flags(["models", *spec["model"]["args"]], {}).payloads
    assert (payloads.url, payloads.format, payloads.batch_size, payloads.batch_interval_s) == (
        "s3://logs/iris",
        "parquet",
        500,
        60.0,
    )


def test_keda_scales_by_the_requests_of_this_service_that_wait() -> None:
    found = service(VALUE_SETS["keda"])
    assert found["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "keda"
    (metric,) = found["spec"]["predictor"]["autoScaling"]["metrics"]
    query = metric["external"]["metric"]["query"]
    name = query.removeprefix("sum(").partition("{")[0]
    assert f"`{name}`" in (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert '="alipes"' in query


def test_many_models_are_named_by_the_services_that_have_room() -> None:
    values = VALUE_SETS["many models"]
    services = [each["metadata"]["name"] for each in objects(values, "InferenceService")]
    models = {each["metadata"]["name"]: each["spec"] for each in objects(values, "TrainedModel")}
    assert services == ["alipes-0", "alipes-1"]
    assert {name: spec["inferenceService"] for name, spec in models.items()} == {
        "first": "alipes-0",
        "second": "alipes-1",
        "third": "alipes-0",
    }
    (runtime,) = [each for each in objects(values, *RUNTIMES) if each["metadata"]["name"] == "alipes-models"]
    assert "--model-control-mode=explicit" in runtime["spec"]["containers"][0]["args"]
    assert {one["autoSelect"] for one in runtime["spec"]["supportedModelFormats"]} == {False}


def test_secrets_of_a_storage_belong_to_an_account_that_is_made() -> None:
    (account,) = objects(VALUE_SETS["secrets"], "ServiceAccount")
    assert account["secrets"] == [{"name": "keys"}]
    predictor = service(VALUE_SETS["secrets"])["spec"]["predictor"]
    assert predictor["serviceAccountName"] == account["metadata"]["name"]
    assert service(VALUE_SETS["account"])["spec"]["predictor"]["serviceAccountName"] == "reader"


def test_annotations_of_a_service_lie_beside_those_that_say_how_it_runs() -> None:
    found = service(VALUE_SETS["account"])["metadata"]["annotations"]
    assert found == {
        "serving.kserve.io/deploymentMode": "Standard",
        "serving.kserve.io/autoscalerClass": "hpa",
        "serving.kserve.io/enable-tag-routing": "true",
    }


def test_a_runtime_says_whose_server_it_runs() -> None:
    for runtime in objects({"predictor": IRIS}, *RUNTIMES):
        assert runtime["metadata"]["annotations"] == {"serving.kserve.io/server-type": "alipes"}


@pytest.mark.parametrize(
    ("name", "component", "address"),
    [
        ("transformer and explainer as apps", "transformer", ("iris-predictor:9000", "grpc-v2")),
        ("transformer and explainer as apps", "explainer", ("iris-predictor:9000", "grpc-v2")),
        ("apps with knative", "transformer", ("iris-predictor.default", "grpc-v2")),
    ],
)
def test_an_app_around_a_predictor_starts_with_what_kserve_adds(
    name: str, component: str, address: tuple[str, str]
) -> None:
    values = {"name": "iris", **VALUE_SETS[name]}
    (container,) = service(values)["spec"][component]["containers"]
    assert container["command"] == ["alipes", "serve"]
    words = list(container["args"])
    # KServe adds these where no argument begins so: transformer_custom.go, explainer_custom.go.
    added = {"--model_name": "iris", "--predictor_host": "iris-predictor.default", "--http_port": "8080"}
    for flag, value in added.items():
        if not any(word.startswith(flag) for word in container["args"]):
            words += [flag, value]
    options = parse_flags(words, {})
    assert options.repository.paths == (values[component]["app"],)
    assert options.repository.model_name == "iris"
    assert (options.predictor.host, options.predictor.protocol) == address
    assert (options.http.port, options.grpc.port, options.metrics.port) == (8080, 9000, 8002)
    assert options.predictor.health_check == (component == "explainer")
    assert container["readinessProbe"]["httpGet"] == {"path": "/v2/health/ready", "port": 8080}

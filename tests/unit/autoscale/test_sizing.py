"""Sizes of a service from a measured curve, each with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alipes.autoscale import ServiceCurve, size
from alipes.cli.app import run
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import documents_of
from alipes.errors import ConfigError
from alipes.tune import Outcome, Point

pytestmark = pytest.mark.extra("deploy")

CURVE = ServiceCurve((1, 2, 4, 8), (50, 90, 120, 121), (20, 23, 35, 70))
VALUES: dict[str, Any] = {"name": "iris", "predictor": {"storage": {"uri": "gs://bucket/iris"}}}


def predictor(**more: Any) -> dict[str, Any]:
    objects = kserve_objects(described(VALUES | more, sizing=size(CURVE, rates=(60, 900))))
    (service,) = [one for one in objects if one["kind"] == "InferenceService"]
    found: dict[str, Any] = service["spec"]["predictor"]
    return found


def test_the_knee_limits_concurrency_and_the_curve_says_what_to_aim_at() -> None:
    sizing = size(CURVE)
    assert (sizing.concurrency, sizing.utilization_percent) == (4, 46)
    assert sizing.aim == pytest.approx(1.85)
    assert (sizing.least, sizing.most) == (None, None)
    assert [reason.split(":")[0] for reason in sizing.reasons] == ["concurrency 4", "target 1.85", "bounds"]


def test_a_latency_limits_concurrency_instead() -> None:
    assert size(CURVE, p99_ms=25).concurrency == 2
    assert size(CURVE, p99_ms=500).concurrency == 8
    with pytest.raises(ConfigError, match="no measured concurrency keeps 3 ms: the fastest has"):
        size(CURVE, p99_ms=3)
    with pytest.raises(ConfigError, match="has no 99th percentiles"):
        size(ServiceCurve((1,), (5,)), p99_ms=3)


def test_rates_bound_the_number_of_replicas() -> None:
    sizing = size(CURVE, rates=(60, 900))
    assert (sizing.least, sizing.most) == (1, 11)
    assert size(CURVE, rates=(0, 0)).least == 0
    assert sizing.reasons[-1] == "at most 11: 900 requests per second, of which a replica answers 84"


def test_a_replica_is_to_have_one_request_at_least() -> None:
    sizing = size(ServiceCurve.of_service_time(0.1, 1))
    assert (sizing.concurrency, sizing.aim, sizing.utilization_percent) == (1, 1, 100)


def test_knative_gets_limit_target_and_bounds() -> None:
    found = predictor(mode="Knative")
    assert (found["containerConcurrency"], found["scaleMetric"], found["scaleTarget"]) == (4, "concurrency", 4)
    assert (found["minReplicas"], found["maxReplicas"]) == (1, 11)
    assert found["annotations"]["autoscaling.knative.dev/target-utilization-percentage"] == "46"


def test_keda_gets_the_requests_of_a_server() -> None:
    values = VALUES["predictor"] | {"scaling": {"kind": "keda"}}
    (metric,) = predictor(predictor=values)["autoScaling"]["metrics"]
    assert metric["external"]["metric"]["query"].startswith("sum(alipes_inference_concurrency{")
    assert metric["external"]["target"] == {"type": "Value", "value": "2"}


def test_a_scaler_that_looks_at_processors_takes_no_sizes() -> None:
    with pytest.raises(ConfigError, match="'hpa' does not look at requests"):
        predictor()


def test_the_command_shows_reasons_and_writes_the_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = zip(CURVE.concurrency, CURVE.rates, CURVE.p99_ms, strict=True)
    trials = [
        Outcome(Point.of({"iris": {"callers": int(callers)}}), {"rate": rate, "p99_ms": p99_ms})
        for callers, rate, p99_ms in points
    ]
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(trial.to_document()) + "\n" for trial in trials))
    words = ["deploy", "kserve", "--name=iris", "--storage=gs://bucket/iris", "--set=mode=Knative"]
    assert run([*words, f"--sized-by={history}", "--rates=60,900"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[0].startswith("concurrency 4: a replica answers 120 per second")
    written = [one for one in documents_of(captured.out, "printed") if one["kind"] == "InferenceService"]
    assert written[0]["spec"]["predictor"]["maxReplicas"] == 11
    for wrong in ("5", "9,5", "a,b"):
        assert run([*words, f"--sized-by={history}", f"--rates={wrong}"]) == 2
        assert "write --rates LOW,HIGH" in capsys.readouterr().err

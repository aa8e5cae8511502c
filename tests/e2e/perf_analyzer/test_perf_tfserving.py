"""`alipes perf_analyzer --service-kind tfserving` with a server that speaks `PredictionService`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.command import Done, alipes
from support.prediction_service import PredictionService, prediction_service

FEW = ("--request-count", "6")


@pytest.fixture
def service() -> Iterator[PredictionService]:
    with prediction_service() as server:
        yield server


def measure(service: PredictionService, *words: str, model: str = "double", folder: Path | None = None) -> Done:
    head = ("perf_analyzer", "--service-kind", "tfserving", "-i", "grpc", "-u", service.address, "-m", model)
    return alipes(*head, *FEW, *words, folder=folder)


def test_rows_are_made_from_the_signature(service: PredictionService) -> None:
    done = measure(service, "-b", "2", "--concurrency-range", "2")
    assert (done.code, done.err) == (0, "")
    assert "  Service Kind: TensorFlow Serving\n" in done.out
    assert "    Request count: 6\n" in done.out
    assert "Server:" not in done.out
    assert len(service.seen) == 6
    request = service.seen[0]
    assert (request.model_spec.name, request.model_spec.signature_name) == ("double", "serving_default")
    assert not request.model_spec.HasField("version")
    assert [dim.size for dim in request.inputs["x"].tensor_shape.dim] == [2, 3]
    assert [len(text) for text in request.inputs["t"].string_val] == [128, 128]


def test_without_a_batch_shapes_are_whole(service: PredictionService, tmp_path: Path) -> None:
    done = measure(service)
    assert done.code == 99
    assert "input t contains dynamic shape, provide shapes to send along with the request" in done.err
    assert measure(service, "--shape", "x:4,3", "--shape", "t:4", "-x", "7").code == 0
    assert service.seen[-1].model_spec.version.value == 7
    data = [{"x": {"content": [1, 2, 3], "shape": [1, 3]}, "t": {"content": ["a"], "shape": [1]}}]
    (tmp_path / "data.json").write_text(json.dumps({"data": data}))
    done = measure(service, "--input-data", "data.json", "-x", "stable", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    request = service.seen[-1]
    assert request.model_spec.version_label == "stable"
    assert np.frombuffer(request.inputs["x"].tensor_content, np.float32).tolist() == [1, 2, 3]
    assert list(request.inputs["t"].string_val) == [b"a"]


def test_requests_are_compressed(service: PredictionService) -> None:
    for algorithm in ("gzip", "deflate"):
        done = measure(service, "-b", "8", "--input-data", "zero", "--grpc-compression-algorithm", algorithm)
        assert (done.code, done.err) == (0, "")
    assert len(service.seen) == 12


def test_an_unknown_model_is_named(service: PredictionService) -> None:
    done = measure(service, model="nobody")
    assert done.code == 99
    assert "failed to get model metadata: Servable not found for request: nobody" in done.err


def test_an_unknown_signature_is_named(service: PredictionService) -> None:
    done = measure(service, "--model-signature-name", "other")
    assert done.code == 99
    assert "there is no signature 'other': serving_default" in done.err


def test_a_request_that_is_refused_ends_the_run(service: PredictionService) -> None:
    done = measure(service, "--shape", "x:2,3", "--shape", "t:1")
    assert done.code == 99
    assert "x has the shape [2, 3], t 1 texts" in done.err


def test_a_server_that_is_not_there_is_reported(service: PredictionService) -> None:
    words = ("--service-kind", "tfserving", "-i", "grpc", "-m", "double", "-u", "127.0.0.1:1")
    done = alipes("perf_analyzer", *words)
    assert done.code == 99
    assert "failed to connect to all addresses" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-i", "http"), "supports only grpc protocol for TensorFlow Serving."),
        (("--streaming",), "does not support streaming for TensorFlow Serving."),
        (("-a",), "does not support async API for TensorFlow Serving."),
        (("--shared-memory", "system"), "--shared-memory is not supported for TensorFlow Serving."),
        (("--collect-metrics",), "only supported with Triton client backend."),
        (("--trace-rate", "1"), "only supported with Triton client backend."),
    ],
)
def test_what_the_service_does_not_have_is_refused(
    service: PredictionService, words: tuple[str, ...], text: str
) -> None:
    done = measure(service, *words)
    assert done.code == 99
    assert text in done.err

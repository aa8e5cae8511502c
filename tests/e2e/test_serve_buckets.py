"""A server and an exporter at the same bucket: what is exported is served, and followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes import repository as qv
from support.buckets import Place, emulated, fresh
from support.endpoints import ENDPOINTS
from support.exported import scaled
from support.models import times
from support.pushed_files import layer
from support.server import ServerDidNotStart, ServerProcess
from support.waiting import TIMEOUT_S

pytest.importorskip("fsspec", reason="buckets need a client: pip install 'alipes[s3]'")
pytestmark = [
    pytest.mark.extra("buckets"),
    pytest.mark.slow("talks to emulated stores for seconds"),
    pytest.mark.filterwarnings("ignore"),
]  # the stores' clients warn of each other


@pytest.fixture(scope="module", params=["gs", "s3", "az"])
def emulator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with emulated(request.param, tmp_path_factory.mktemp(request.param)) as place:
        yield place


def address(place: Place) -> str:
    """The repository's address for a server; S3 servers that are not Amazon's have Triton's form of address."""
    if place.url.startswith("s3://"):
        return f"s3://{place.options['endpoint_url']}/{place.url.removeprefix('s3://')}"
    return place.url


def keys(place: Place) -> dict[str, str]:
    """What the clients of the stores look for in the environment."""
    options = place.options
    match place.url.partition("://")[0]:
        case "s3":
            return {"AWS_ACCESS_KEY_ID": options["key"], "AWS_SECRET_ACCESS_KEY": options["secret"]}
        case "gs":
            return {"STORAGE_EMULATOR_HOST": options["endpoint_url"]}
        case _:
            return {"AZURE_STORAGE_CONNECTION_STRING": options["connection_string"]}


def test_what_is_exported_to_a_bucket_is_served_from_it_and_followed(
    emulator: Place, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    place = fresh(emulator)
    repo = qv.ModelRepository(place.url, **place.options)
    model = repo.add("m", qv.Platform.ONNX)
    model.export_version(scaled(factor=2.0))
    repo.fs.write("half", "m/7/model.onnx")
    repo.fs.write("", "m/.claim-7")  # an exporter is uploading it
    server = serve(
        address(place),
        "--model-control-mode=poll",
        "--repository-poll-secs=1",
        environment=keys(place) | {"TMPDIR": str(tmp_path)},
    )
    ones = np.ones((1, 4), np.float32)
    with ENDPOINTS["http"](server) as client:
        assert client.ask("m", {"x": ones})["y"].tolist() == [[2, 2, 2, 2]]
        model.export_version(scaled(factor=5.0), version=2)
        deadline = time.monotonic() + TIMEOUT_S
        while (reply := client.ask("m", {"x": ones})).version == "1":
            assert time.monotonic() < deadline, server.output
            time.sleep(0.1)  # the server looks once a second
        assert (reply.version, reply["y"].tolist()) == ("2", [[5, 5, 5, 5]])
    assert len(list(tmp_path.glob("alipes-repository-*"))) == 1
    assert server.stop() == 0
    assert list(tmp_path.glob("alipes-repository-*")) == []


def test_a_missing_bucket_is_an_error_and_not_made(emulator: Place) -> None:
    place = fresh(emulator)
    server = ServerProcess(address(place), environment=keys(place))
    try:
        with pytest.raises(ServerDidNotStart) as caught:
            server.wait_until_started()
    finally:
        server.kill()
    assert "there is no bucket" in caught.value.output


def test_only_objects_that_patterns_admit_are_fetched(
    emulator: Place, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    place = fresh(emulator)
    repo = qv.ModelRepository(place.url, **place.options)
    for name, content in (
        ("digits.onnx", times(2.0, 4).SerializeToString()),
        ("other/digits.onnx", times(3.0, 4).SerializeToString()),
        ("weights.bin", b"bytes"),
    ):
        repo.fs.write(content, name)
    patterns = {"STORAGE_ALLOW_PATTERNS": '["*.onnx"]', "STORAGE_IGNORE_PATTERNS": "other/*"}
    environment = keys(place) | {"TMPDIR": str(tmp_path)} | patterns
    server = serve(f"--model-store={address(place)}", "--model-name=m", environment=environment)
    with ENDPOINTS["http"](server) as client:
        assert client.ask("m", {"X": np.ones((1, 4), np.float32)})["Y"].tolist() == [[2, 2, 2, 2]]
    fetched = {path.name for path in tmp_path.glob("alipes-repository-*/models/**/*") if path.is_file()}
    assert "digits.onnx" in fetched and "weights.bin" not in fetched
    assert not list(tmp_path.glob("alipes-repository-*/models/other"))
    with ServerProcess(
        f"--model-store={address(place)}",
        environment=environment | {"STORAGE_ALLOW_PATTERNS": "*.xml"},
    ) as nothing:
        assert nothing.wait() == 1
    assert "holds no file that STORAGE_ALLOW_PATTERNS and STORAGE_IGNORE_PATTERNS admit" in nothing.output
    named = serve(
        f"--model-store={address(place)}/digits.onnx",
        "--model-name=m",
        environment=environment | {"STORAGE_ALLOW_PATTERNS": "*.xml"},
    )
    with ENDPOINTS["http"](named) as client:
        assert client.ask("m", {"X": np.ones((1, 4), np.float32)})["Y"].tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize("what", ["", "digits.onnx", "digits.tar.gz"], ids=["prefix", "object", "archive"])
def test_a_bare_model_in_a_bucket_is_served(
    what: str, emulator: Place, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    place = fresh(emulator)
    repo = qv.ModelRepository(place.url, **place.options)
    model = times(2.0, 4).SerializeToString()
    repo.fs.write(model, "digits.onnx")
    repo.fs.write("words", "README.md")
    if what.endswith(".gz"):
        repo.fs.write(layer({"labels.txt": b"", "any.onnx": model}), what)
    server = serve(
        f"--model-store={address(place)}{f'/{what}' if what else ''}",
        "--model-name=m",
        environment=keys(place) | {"TMPDIR": str(tmp_path)},
    )
    with ENDPOINTS["http"](server) as client:
        assert client.ask("m", {"X": np.ones((1, 4), np.float32)})["Y"].tolist() == [[2, 2, 2, 2]]

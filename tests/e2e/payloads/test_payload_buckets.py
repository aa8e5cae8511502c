"""The payload log as files of a bucket: emulators of the stores, and servers that really run."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.repository.store.open import open_store
from support.buckets import Place, emulated, fresh
from support.models import add_model, times
from support.ports import free_ports
from support.server import ServerProcess
from support.waiting import TIMEOUT_S

pytest.importorskip("fsspec", reason="buckets need a client: pip install 'alipes[s3]'")
pytestmark = [
    pytest.mark.extra("buckets"),
    pytest.mark.slow("talks to emulated stores for seconds"),
    pytest.mark.filterwarnings("ignore"),
]  # the stores' clients warn of each other

BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


@pytest.fixture(params=["gs", "s3", "az"])
def emulator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / request.param
    folder.mkdir()
    with emulated(request.param, folder) as place:
        yield place


def keys(place: Place) -> dict[str, str]:
    """What the clients of the stores look for in the environment, and what KServe names there."""
    options = place.options
    match place.url.partition("://")[0]:
        case "s3":
            host = options["endpoint_url"].removeprefix("http://")
            names = {"AWS_ACCESS_KEY_ID": options["key"], "AWS_SECRET_ACCESS_KEY": options["secret"]}
            return {**names, "S3_ENDPOINT": host, "S3_USE_HTTPS": "0"}
        case "gs":
            return {"STORAGE_EMULATOR_HOST": options["endpoint_url"]}
        case _:
            return {"AZURE_STORAGE_CONNECTION_STRING": options["connection_string"]}


def ask(server: ServerProcess) -> None:
    url = f"http://{server.http}/v2/models/double/infer"
    with urllib.request.urlopen(url, json.dumps(BODY).encode(), timeout=TIMEOUT_S) as answer:
        assert b'"Y"' in answer.read()


def test_a_bucket_takes_files(emulator: Place, repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double", times(columns=2))
    place = fresh(emulator)
    store = open_store(place.url, **place.options)  # makes the bucket
    flags = (f"--payload-log-url={place.url}", "--payload-log-batch-size=4")
    server = serve(repository, *flags, environment=keys(place) | {"POD_NAME": "iris-0"})
    for _ in range(3):
        ask(server)
    assert server.stop() == 0
    names = store.glob("*/*.jsonl")
    assert all("-iris-0-" in name for name in names)
    files = [[json.loads(line) for line in str(store.read(name)).splitlines()] for name in names]
    assert [len(records) for records in files] == [4, 2]
    records = [record for records in files for record in records]
    assert [record["reqType"].rpartition(".")[2] for record in records] == ["request", "response"] * 3
    assert [json.loads(base64.b64decode(one["bytes"])).get("inputs") for one in records[::2]] == [BODY["inputs"]] * 3
    assert "did not take" not in server.output


def test_a_store_that_is_not_there_costs_no_request(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "double", times(columns=2))
    (port,) = free_ports(1)
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_MAX_ATTEMPTS": "1"}
    flags = (f"--payload-log-url=s3://http://127.0.0.1:{port}/bucket/log", "--payload-log-batch-size=2")
    server = serve(repository, *flags, environment=keys)
    for _ in range(20):
        ask(server)
    server.wait_for_output("the payload log's sink did not take 2 payloads: EndpointConnectionError")
    for _ in range(20):
        ask(server)
    server.wait_for_output("the payload log's sink did not take")  # the log follows the counts
    assert server.output.count("the payload log's sink did not take") == 1

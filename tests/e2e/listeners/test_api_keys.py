"""Keys that clients show over HTTP, gRPC and for metrics."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import alipes
import grpc
import numpy as np
import pytest
from alipes.client import AsyncClient, Client, StreamClient
from alipes.errors import Unauthenticated
from support.models import add_model
from support.server import ServerProcess

KEY, OTHER = "key-of-the-first-team", "key-of-the-second-team"
INFER = "/v2/models/double/infer"
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]})
SERVICE = "/inference.GRPCInferenceService"
HEALTH = "/grpc.health.v1.Health/Check"
MISSING = "this server asks for a key: send the header 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository, f"--api-key={KEY}", f"--api-key={OTHER}", "--model-control-mode=explicit",
                        "--load-model=*")  # fmt: skip


def ask(address: str, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str, str | None]:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("WWW-Authenticate")
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", INFER),
        ("GET", "/v2"),
        ("GET", "/v2/models/double/config"),
        ("GET", "/v2/models/double/stats"),
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/repository/models/double/unload"),
        ("POST", "/v2/logging"),
        ("POST", "/v2/systemsharedmemory/region/x/register"),
        ("GET", "/v1/models"),
        ("POST", "/v1/models/double:predict"),
        ("GET", "/openapi.json"),
        ("GET", "/docs"),
        ("POST", "/double"),
        ("GET", "/v2/nothing"),
        ("GET", "/v2/models/double/versions/one/two"),
        ("OPTIONS", INFER),
    ],
)
def test_every_path_over_http_needs_a_key(server: ServerProcess, method: str, path: str) -> None:
    status, body, challenge = ask(server.http, method, path, "x" * 100_000)
    assert (status, json.loads(body), challenge) == (401, {"error": MISSING}, 'Bearer realm="alipes"')


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer {OTHER}"},
        {"X_Api_Key": KEY},
        {"Authorization": "Basic dXNlcjpwYXNz", "X_Api_Key": OTHER},
    ],
)
def test_any_key_in_either_header_is_enough(server: ServerProcess, headers: dict[str, str]) -> None:
    status, body, _ = ask(server.http, "POST", INFER, BODY, **headers)
    assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [2.0, 4.0])


@pytest.mark.parametrize("value", ["", KEY[:-1], f"{KEY}x", KEY.upper()])
def test_another_key_is_refused_as_wrong(server: ServerProcess, value: str) -> None:
    status, body, challenge = ask(server.http, "POST", INFER, BODY, X_Api_Key=value)
    assert (status, challenge) == (401, 'Bearer realm="alipes", error="invalid_token"')
    assert "none that this server knows" in json.loads(body)["error"]


@pytest.mark.parametrize(
    "path", ["/v2/health/live", "/v2/health/ready", "/v2/models/double/ready", "/v1/models/double"]
)
def test_probes_need_no_key(server: ServerProcess, path: str) -> None:
    assert ask(server.http, "GET", path)[0] == 200


def test_the_page_of_a_browser_needs_a_key(server: ServerProcess) -> None:
    assert ask(server.http, "GET", "/", Accept="text/html")[0] == 401
    assert ask(server.http, "GET", "/", Accept="text/html", X_Api_Key=KEY)[0] == 200


def test_metrics_need_a_key(server: ServerProcess) -> None:
    assert ask(server.metrics, "GET", "/metrics")[0] == 401
    assert ask(server.metrics, "GET", "/metrics", Authorization=f"Bearer {KEY}")[0] == 200


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer", "ServerMetadata", "RepositoryIndex", "Nothing"])
def test_every_call_over_grpc_needs_a_key(server: ServerProcess, method: str) -> None:
    with grpc.insecure_channel(server.grpc) as channel, pytest.raises(grpc.RpcError) as caught:
        list(channel.stream_stream(f"{SERVICE}/{method}")(iter([b""]), timeout=30))
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAUTHENTICATED, MISSING)


@pytest.mark.parametrize("metadata", [("authorization", f"Bearer {KEY}"), ("x-api-key", OTHER)])
def test_a_call_over_grpc_shows_its_key_in_metadata(server: ServerProcess, metadata: tuple[str, str]) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"{SERVICE}/ServerReady")
        assert call(b"", timeout=30, metadata=(metadata,)) == b"\x08\x01"
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
        assert list(stream(iter([]), timeout=30, metadata=(metadata,))) == []


def test_the_health_of_grpc_needs_no_key(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        assert channel.unary_unary(HEALTH)(b"", timeout=30) == b"\x08\x01"


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_client_shows_the_key_that_it_has(
    server: ServerProcess, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{scheme}://{getattr(server, scheme)}"
    x = np.ones((1, 2), np.float32)
    with Client(address) as stranger, pytest.raises(Unauthenticated):
        stranger.infer("double", x)
    with Client(address, api_key=KEY) as client:
        assert client.infer("double", x).tolist() == [[2.0, 2.0]]

    async def awaited() -> object:
        async with AsyncClient(address, api_key=OTHER) as client:
            return (await client.infer("double", x)).tolist()

    assert asyncio.run(awaited()) == [[2.0, 2.0]]
    monkeypatch.setenv("ALIPES_API_KEY", KEY)
    # The members of a fleet show the key, too.
    with Client([address, address.replace("127.0.0.1", "localhost")], timeout_s=30) as client:
        assert client.infer("double", x).tolist() == [[2.0, 2.0]]


def test_a_stream_client_shows_its_key(server: ServerProcess) -> None:
    with pytest.raises(Unauthenticated):
        StreamClient(server.grpc, "double")
    with StreamClient(server.grpc, "double", api_key=KEY) as client:
        client.send(np.ones((1, 2), np.float32), request_id=0)
        y, _, _ = client.get(timeout_s=30)
        assert np.asarray(y).tolist() == [[2.0, 2.0]]


def alipes_command(*words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ALIPES_API_KEY": key}
    return subprocess.run(
        [sys.executable, "-m", "alipes", *words], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_takes_a_key_or_says_that_it_needs_one(server: ServerProcess) -> None:
    url = f"--url=http://{server.http}"
    refused = alipes_command("models", "list", url)
    assert refused.returncode == 1
    assert "give the key that the server asks for with --api-key, or in\n  ALIPES_API_KEY" in refused.stderr
    assert "double" in alipes_command("models", "list", url, f"--api-key={KEY}").stdout
    assert "double" in alipes_command("status", url, key=OTHER).stdout
    assert '"models"' in alipes_command("explain", "double", url, "--json", key=KEY).stdout
    measured = ("loadtest", "double", url, "--concurrency", "2", "--duration", "0.2", f"--api-key={KEY}")
    assert alipes_command(*measured).returncode == 0


def test_a_file_of_keys_is_read_again_while_the_server_runs(
    models: Path, tmp_path: Path, serve: Callable[..., ServerProcess]
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    server = serve(models, f"--api-key-file={file}", "--api-key-open=health,metrics,metadata")
    assert ask(server.http, "POST", INFER, BODY, X_Api_Key=KEY)[0] == 200
    assert ask(server.http, "GET", "/v2")[0] == 200
    assert ask(server.metrics, "GET", "/metrics")[0] == 200
    (tmp_path / "next").write_text(f"{OTHER}\n")
    (tmp_path / "next").replace(file)
    server.wait_for_output("The keys were read again: there are 1")
    assert ask(server.http, "POST", INFER, BODY, X_Api_Key=KEY)[0] == 401
    assert ask(server.http, "POST", INFER, BODY, X_Api_Key=OTHER)[0] == 200
    file.write_text("\n")
    server.wait_for_output("the keys stay as they were: .* has no key")
    assert ask(server.http, "POST", INFER, BODY, X_Api_Key=OTHER)[0] == 200


def test_a_page_of_another_site_with_the_key_may_send(server: ServerProcess) -> None:
    assert ask(server.http, "POST", INFER, BODY, Origin="http://page.example", X_Api_Key=KEY)[0] == 200
    assert ask(server.http, "POST", INFER, BODY, Origin="http://page.example")[0] == 401


def test_a_server_of_a_script_knows_its_own_key(models: Path) -> None:
    with alipes.Server(models, port=0, host="127.0.0.1", api_key=KEY, api_key_open="none") as server:
        server.wait(timeout=60)
        assert [entry.name for entry in server.models()] == ["double"]
        assert ask(server.http, "GET", "/v2/health/ready")[0] == 401


def test_what_watches_and_what_answers_files_take_a_key(server: ServerProcess, tmp_path: Path) -> None:
    http, metrics = (address.rpartition(":")[2] for address in (server.http, server.metrics))
    watch = ("monitor", "127.0.0.1", f"--http-port={http}", f"--metrics-port={metrics}", "--seconds=1")
    record = tmp_path / "record.csv"
    assert alipes_command(*watch).returncode == 1
    done = alipes_command(*watch, f"--output={record}", f"--api-key={KEY}")
    assert done.returncode == 0, done.stderr
    np.save(tmp_path / "x.npy", np.ones((4, 2), np.float32))
    files = (
        "batch",
        "run",
        "double",
        str(tmp_path / "x.npy"),
        f"--output={tmp_path}/out",
        f"--url=http://{server.http}",
    )
    done = alipes_command(*files, f"--api-key={KEY}")
    assert done.returncode == 0, done.stderr
    held = [one for one in (tmp_path / "out").rglob("*") if one.is_file() and KEY.encode() in one.read_bytes()]
    assert held == [], "the folder of a run holds no key"
    assert alipes_command("tune", "models", "--model=m", "--api-key=a b").stderr.startswith("error: api_key: expected")

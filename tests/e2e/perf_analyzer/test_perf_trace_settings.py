"""`alipes perf_analyzer` sets how a server traces, and compresses requests over gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest
from support.command import Done, alipes
from support.perf_models import add_perf_models
from support.relay import Relay
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    folder = tmp_path_factory.mktemp("traced")
    add_perf_models(folder / "models")
    return serve_module(folder / "models", "--trace-config", f"triton,file={folder / 'traces.json'}")


def measure(server: ServerProcess | Relay, wire: str, *words: str) -> Done:
    address = server.address if isinstance(server, Relay) else getattr(server, wire)
    return alipes("perf_analyzer", "-m", "mlp", "-i", wire, "-u", address, "--request-count", "20", *words)


def settings(server: ServerProcess) -> dict[str, Any]:
    with urlopen(f"http://{server.http}/v2/trace/setting", timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


@pytest.mark.parametrize(("wire", "rate"), [("http", "70"), ("grpc", "80")])
def test_trace_settings_are_set_before_the_run(server: ServerProcess, wire: str, rate: str) -> None:
    words = ("--trace-level", "TIMESTAMPS", "--trace-level", "TENSORS", "--trace-rate", rate, "--trace-count", "5")
    done = measure(server, wire, *words, "--log-frequency", "3")
    assert (done.code, done.err) == (0, "")
    found = settings(server)
    assert sorted(found["trace_level"]) == ["TENSORS", "TIMESTAMPS"]
    assert (found["trace_rate"], found["log_frequency"]) == (rate, "3")
    assert measure(server, wire, "--trace-level", "OFF").code == 0
    assert settings(server)["trace_level"] == ["OFF"]
    assert settings(server)["trace_rate"] == rate


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_trace_settings_that_the_server_refuses_end_the_run(server: ServerProcess, wire: str) -> None:
    done = measure(server, wire, "--trace-file", "traces.json")
    assert done.code == 99
    assert "failed to create triton client backend: " in done.err
    assert "trace" in done.err


@pytest.mark.parametrize("streaming", [(), ("--streaming",)])
def test_compressed_requests_are_smaller_and_answered(server: ServerProcess, streaming: tuple[str, ...]) -> None:
    sizes = []
    for algorithm in ("none", "gzip", "deflate"):
        words = ("-b", "64", "--input-data", "zero", "--grpc-compression-algorithm", algorithm)
        with Relay(server.grpc) as relay:
            done = measure(relay, "grpc", *words, *streaming)
        assert (done.code, done.err) == (0, "")
        assert "    Request count: 20\n" in done.out
        sizes.append(relay.sent)
    plain, gzip, deflate = sizes
    # 64 rows of 64 numbers: 16 KiB in each request.
    assert plain > 20 * 16_384
    assert max(gzip, deflate) < plain / 10

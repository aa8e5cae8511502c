"""A client that was given the wrong port, model, input or output is told what is there instead."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, InferenceClient, Retry
from alipes.errors import AlipesError, NotFound, NotReady, TransportError
from support.models import add_model, times
from support.ports import unused_address
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
X = np.ones((1, 2), np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("repository")
    for name in ("classifier", "whitener", "classifier-2"):
        add_model(repository, name, times(2.0))
    return serve_module(repository)


def refusal(ask: Callable[[], Any], kind: type[AlipesError]) -> str:
    with pytest.raises(kind) as caught:
        ask()
    return str(caught.value)


def likely(address: str, step: int) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + step}"


def test_an_http_port_for_a_grpc_client_is_named(server: ServerProcess) -> None:
    explicit = f"grpc://{server.http}"
    for address, text in (
        (server.http, refusal(lambda: InferenceClient(server.http, "classifier"), TransportError)),
        (explicit, refusal(lambda: Client(explicit).infer("classifier", X), AlipesError)),
        (explicit, refusal(lambda: asyncio.run(AsyncClient(explicit).metadata("classifier")), AlipesError)),
    ):
        assert f"the server at {address} speaks HTTP, and this client uses gRPC" in text
        assert "usually HTTP is 8000, gRPC 8001" in text or f"pass '{likely(server.http, 1)}'" in text


def test_a_grpc_port_for_an_http_client_is_named(server: ServerProcess) -> None:
    text = refusal(lambda: Client(f"http://{server.grpc}").metadata("classifier"), TransportError)
    assert f"the server at http://{server.grpc} speaks gRPC, and this client uses HTTP" in text


def test_a_metrics_port_is_no_server(server: ServerProcess) -> None:
    text = refusal(lambda: InferenceClient(server.metrics, "classifier"), TransportError)
    assert "is no inference server, but HTTP of another kind, such as its metrics" in text
    text = refusal(lambda: Client(f"http://{server.metrics}").infer("classifier", X), TransportError)
    assert "such as its metrics, and this client uses HTTP" in text
    text = refusal(lambda: Client(server.metrics).infer("classifier", X), AlipesError)
    assert "such as its metrics, and this client uses gRPC" in text


def test_a_metrics_port_is_neither_live_nor_ready(server: ServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(f"http://{server.metrics}")
    assert (client.is_live(), client.is_ready(), client.is_model_ready("classifier")) == (False, False, False)
    assert ["such as its metrics" in line for line in caplog.messages] == [True]
    assert "such as its metrics" in refusal(lambda: client.metadata("classifier"), TransportError)
    right = Client(f"http://{server.http}")
    assert (right.is_live(), right.is_ready(), right.is_model_ready("classifier")) == (True, True, True)


def test_the_likely_port_is_named_where_the_protocol_is_spoken(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ports of this server are no neighbours; the distance is what is set."""
    from alipes.client import wrong_port

    distance = int(server.grpc.rpartition(":")[2]) - int(server.http.rpartition(":")[2])
    monkeypatch.setattr(wrong_port, "_STEPS", {("grpc", "http"): distance, ("http", "grpc"): -distance})
    text = refusal(lambda: InferenceClient(server.http, "classifier"), TransportError)
    assert f"gRPC is at {server.grpc}: pass '{server.grpc}'" in text
    text = refusal(lambda: Client(f"http://{server.grpc}").metadata("classifier"), TransportError)
    assert f"HTTP is at {server.http}: pass 'http://{server.http}'" in text


def test_a_health_call_at_the_wrong_port_says_so_once(server: ServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(f"grpc://{server.http}")
    assert [client.is_ready() for _ in range(3)] == [False] * 3
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "speaks HTTP, and this client uses gRPC" in warnings[0].getMessage()


def test_an_address_where_nobody_answers_is_not_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    address = unused_address()
    assert "the server at" not in refusal(lambda: Client(address).metadata("m"), TransportError)
    assert not Client(address).is_ready()
    assert caplog.text == ""


def test_a_misspelt_model_is_answered_with_the_models_there_are(server: ServerProcess) -> None:
    text = refusal(lambda: InferenceClient(server.grpc, "clasifier"), NotReady)
    assert text == (
        f"Model \"clasifier\" is not at {server.grpc}: the server has 'classifier', 'classifier-2', 'whitener'"
    )
    for address in (server.grpc, f"http://{server.http}"):
        client = Client(address)
        for ask in (client.metadata, client.config, client.signature, lambda name: client.infer(name, X)):  # noqa: B023
            text = refusal(lambda ask=ask: ask("whitner"), NotFound)  # type: ignore[misc]
            assert re.search("unknown model: 'whitner' .*; the server has 'whitener', 'classifier", text), text


def test_a_version_that_is_not_there_names_no_other_models(server: ServerProcess) -> None:
    assert "the server has" not in refusal(lambda: Client(server.grpc).metadata("classifier", "7"), NotFound)


def test_a_server_that_loads_all_itself_says_how_to_load_by_name(server: ServerProcess) -> None:
    refused = "explicit model load / unload is not allowed if polling is enabled"
    often = Retry(times=3, first_s=60.0)  # a second attempt would take longer than the test may
    for address in (server.grpc, f"http://{server.http}"):
        client = Client(address, retry=often)

        async def awaited(name: str, address: str = address) -> None:
            await AsyncClient(address, retry=often).load(name)

        for ask in (client.load, client.unload, lambda name: asyncio.run(awaited(name))):
            text = refusal(lambda ask=ask: ask("whitener"), NotReady)  # type: ignore[misc]
            mend = "start the server with --model-control-mode explicit to load and unload models by name"
            assert text == f"{refused}: {mend}"
            text = refusal(lambda ask=ask: ask("whitner"), NotFound)  # type: ignore[misc]
            assert text == f"{refused}; the server has 'whitener', 'classifier', 'classifier-2'"


def test_unloading_what_is_not_there_is_no_error_as_in_triton(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path, "whitener", times(2.0))
    server = serve(tmp_path, "--model-control-mode=explicit")
    with Client(server.grpc) as client:
        client.unload("whitner")
        client.unload_model("whitener")


def test_a_path_in_the_address_where_nothing_is_is_named(server: ServerProcess) -> None:
    client = Client(f"http://{server.http}/foo")
    for ask in (client.server_metadata, client.models, lambda: client.infer("classifier", X)):
        text = refusal(ask, NotFound)
        assert text.startswith("Not Found: the address has the path '/foo': leave it out, or correct it")


def test_a_missing_output_is_named_beside_those_there_are(server: ServerProcess) -> None:
    message = "the answer of model 'classifier' has no output 'probs'; it has 'Y'"
    with Client(server.grpc) as client:
        answers = [client.infer("classifier", {"X": X}), client.ask("classifier", {"X": X}).outputs]
        answers.append(client.infer("classifier", {"X": X}))  # the short way of calls that come again
    for answer in answers:
        with pytest.raises(KeyError, match=message):
            answer["probs"]
        assert (answer == {"Y": answer["Y"]}, answer.get("probs")) == (True, None)
    with (
        InferenceClient(server.grpc, "classifier") as asks,
        pytest.raises(KeyError, match="has no input 'x'; it has 'X'"),
    ):
        asks.inputs["x"]


def test_a_server_with_many_models_names_the_nearest_ones(tmp_path: Path, serve: Serve) -> None:
    for number in range(14):
        add_model(tmp_path, f"model-{number}", times(2.0))
    server = serve(tmp_path)
    text = refusal(lambda: Client(server.grpc).metadata("model_13"), NotFound)
    assert "the server has 'model-13', " in text
    assert text.endswith(", and 4 more")

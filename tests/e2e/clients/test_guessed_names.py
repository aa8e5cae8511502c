"""Names that people guess: the same words do the same with both clients, and tritonclient's names do, too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client
from alipes.client.triton_aliases import TritonAliases
from alipes.errors import Internal, InvalidArgument, NotFound
from alipes.types import ModelState
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]
Ask = Callable[..., Any]
X = np.ones((1, 2), np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    both = "version_policy { all { } }"
    add_model(repository, "double", times(2.0), versions=(1, 3), config=both)
    add_model(repository, "broken", times(2.0), config="max_batch_size: -7")
    flags = ("--model-control-mode=explicit", "--load-model=double", "--exit-on-error=false")
    return serve_module(repository, *flags)


@pytest.fixture(params=["sync over grpc", "sync over http", "async over grpc", "async over http"])
def ask(request: pytest.FixtureRequest, server: ServerProcess) -> Ask:
    """Calls a method of a client by its name."""
    address = server.grpc if request.param.endswith("grpc") else f"http://{server.http}"
    if request.param.startswith("sync"):
        client = Client(address)
        return lambda name, *arguments, **options: getattr(client, name)(*arguments, **options)

    async def await_answer(name: str, *arguments: Any, **options: Any) -> Any:
        async with AsyncClient(address) as client:
            return await getattr(client, name)(*arguments, **options)

    return lambda name, *arguments, **options: asyncio.run(await_answer(name, *arguments, **options))


def test_short_and_long_names_answer_alike(ask: Ask) -> None:
    for live in ("live", "is_live", "is_server_live"):
        assert ask(live) is True
    for ready in ("ready", "is_ready", "is_server_ready"):
        assert ask(ready) is True
    for ready in ("ready", "is_ready", "is_model_ready"):
        assert (ask(ready, "double"), ask(ready, "double", 3), ask(ready, "nobody")) == (True, True, False)
    assert ask("is_model_ready", model_name="double", model_version="3")
    for models in ("models", "list_models", "get_model_repository_index"):
        states = {(entry.name, entry.version): entry.state for entry in ask(models)}
        assert states["double", "3"] is ModelState.READY
    for statistics in ("statistics", "stats", "get_inference_statistics"):
        assert [line["version"] for line in ask(statistics, "double", 3)] == ["3"]
        assert {line["name"] for line in ask(statistics)} == {"double"}
    assert ask("metadata", "double") == ask("get_model_metadata", "double")
    assert ask("config", "double") == ask("get_model_config", model_name="double", model_version="1")
    assert ask("server_metadata") == ask("get_server_metadata", as_json=True)


def test_a_model_is_loaded_and_unloaded_under_both_names(ask: Ask) -> None:
    assert ask("unload_model", "double") is None
    assert not ask("ready", "double")
    content = times(5.0).SerializeToString()
    assert (
        ask("load_model", "double", config='{"backend": "onnxruntime"}', files={"file:1/model.onnx": content}) is None
    )
    assert ask("infer", "double", X).tolist() == [[5, 5]]
    ask("unload", "double", timeout=60)
    ask("load", "double", timeout_s=60)
    assert ask("infer", "double", X).tolist() == [[2, 2]]


@pytest.mark.parametrize("version", [1, "1", np.int64(1)])
def test_a_version_is_a_number_or_text_under_either_name(ask: Ask, version: Any) -> None:
    assert ask("ask", "double", X, version=version).version == "1"
    assert ask("ask", "double", X, model_version=version, timeout=60).version == "1"
    assert ask("infer", "double", X, version=version, timeout=60.0).tolist() == [[2, 2]]
    assert ask("signature", "double", model_version=version).inputs["X"].datatype == "FP32"


def test_the_latest_version_is_what_no_version_means(ask: Ask) -> None:
    for version in (None, "", -1):
        assert ask("ask", "double", X, version=version).version == "3"


def test_a_model_that_cannot_be_loaded_as_there_is_none_is_not_found(ask: Ask) -> None:
    with pytest.raises(NotFound) as raised:
        ask("load", "doubel")
    expected = "failed to load 'doubel', failed to poll from model repository; the server has 'double', 'broken'"
    assert (str(raised.value), raised.value.model) == (expected, "doubel")
    with pytest.raises(NotFound, match=r"requested model 'doubel' is not available; the server has 'double', 'broken'"):
        ask("statistics", "doubel")


def test_a_model_that_is_there_and_cannot_be_loaded_is_no_missing_one(ask: Ask) -> None:
    with pytest.raises((Internal, InvalidArgument), match="failed to load 'broken'"):
        ask("load", "broken")


def test_statistics_of_a_model_that_is_not_loaded_keep_their_error(ask: Ask) -> None:
    with pytest.raises(InvalidArgument, match=r"^requested model 'broken' is not available$"):
        ask("statistics", "broken")


def test_closing_an_async_client_may_be_awaited(server: ServerProcess) -> None:
    async def close() -> None:
        client = AsyncClient(server.grpc)
        assert await client.ready()
        await client.close()
        await client.aclose()
        client.close()

    asyncio.run(close())


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        names = {name for name in dir(client) if not name.startswith("_")} - {"unshare", "aclose"}
        return {name: list(inspect.signature(getattr(client, name)).parameters) for name in names}

    assert methods(Client) == methods(AsyncClient)


def test_each_name_of_tritonclient_says_whose_it_is() -> None:
    names = [name for name in vars(TritonAliases) if not name.startswith("_")]
    assert {*names, "is_model_ready"} == {
        "is_server_live",
        "is_server_ready",
        "is_model_ready",
        "get_server_metadata",
        "get_model_metadata",
        "get_model_config",
        "get_inference_statistics",
        "get_model_repository_index",
        "load_model",
        "unload_model",
    }
    for name in names:
        text = inspect.getdoc(getattr(Client, name)) or ""
        assert text.endswith("under tritonclient's name.")
        assert hasattr(Client, text.split("`")[1])

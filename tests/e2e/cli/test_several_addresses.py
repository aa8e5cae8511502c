"""`--url` with several addresses: what commands do with them, and which take one alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from support.command import alipes, alipes_process
from support.models import add_model, times
from support.ports import unused_address
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> list[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns="columns"))
    return [serve_module(repository, "--model-control-mode=explicit", "--load-model=double") for _ in range(2)]


def test_a_model_answers_at_a_server_that_is_there(pair: list[ServerProcess]) -> None:
    done = alipes_process(
        "infer", "double", "[[1, 2]]", "--url", f"{unused_address()},{pair[0].grpc}", "--url", pair[1].http
    )
    assert done.code == 0, done.err
    assert "[[2. 4.]]" in done.out
    assert "is left until it answers again" in done.err


def test_models_are_unloaded_and_loaded_at_every_server(pair: list[ServerProcess]) -> None:
    both = ",".join(server.http for server in pair)
    for verb, state in (("unload", "UNAVAILABLE"), ("load", "READY")):
        assert alipes("models", verb, "double", "--url", both).code == 0
        for server in pair:
            assert state in alipes("models", "list", "--url", server.http).out
    assert "READY" in alipes("models", "list", "--url", both).out


def test_a_load_test_says_how_many_requests_went_where(pair: list[ServerProcess]) -> None:
    options = ("loadtest", "double", "--shape", "X:2", "--callers", "4", "--count", "100")
    done = alipes(*options, "--url", pair[0].http, "--url", pair[1].grpc, "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["address"] == f"http://{pair[0].http}, grpc://{pair[1].grpc}"
    shares = {share["share"]: share["answers"] for share in report["levels"][0]["shares"]}
    assert shares == {f"http://{pair[0].http}": 50, f"grpc://{pair[1].grpc}": 50}
    done = alipes(*options, "--url", f"{pair[0].http},{pair[1].grpc}")
    assert {row[0] for row in done.rows if row and "://" in row[0]} == set(shares)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["stats"], "each server counts by itself"),
        (["status"], "a status is that of one server"),
        (["explain", "double"], "each server has its own queues"),
        (["advise"], "a server's stages are its own"),
        (["loadtest", "double", "--compare", "a:1", "b:1"], "what it compares names its own servers"),
        (["loadtest", "--mix", "double", "--mix", "other"], "its entries name their servers, as digits@HOST:PORT"),
    ],
)
def test_a_command_of_one_server_says_so(command: list[str], why: str) -> None:
    done = alipes(*command, "--url", "http://a:1,http://b:1")
    assert done.code == 2
    assert "one" in done.message
    assert why in done.message


def test_an_empty_address_is_refused() -> None:
    done = alipes("infer", "double", "1", "--url", "a:1,")
    assert done.code == 2
    assert "write --url ADDRESS, or --url ADDRESS,ADDRESS for several" in done.message

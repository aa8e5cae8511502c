"""`alipes models` and `alipes stats` against real servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import alipes, check_readable
from support.models import add_model
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

_BROKEN = "x = 1\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("double", "other"):
        add_model(folder, name)
    (folder / "broken" / "1").mkdir(parents=True)
    (folder / "broken" / "1" / "model.py").write_text(_BROKEN)
    (folder / "empty").mkdir()
    return folder


@pytest.fixture(scope="module")
def server(serve_module: Serve, repository: Path) -> ServerProcess:
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=double")


def test_models_are_loaded_listed_and_unloaded(server: ServerProcess) -> None:
    url = ("--url", server.http)
    assert ["other", "not", "loaded"] in alipes("models", "list", *url).rows
    done = alipes("models", "load", "other", "double", *url)
    assert (done.code, done.out) == (0, "loaded other, version 1\nloaded double, version 1\n")
    assert ["other", "1", "READY"] in alipes("models", "list", *url).rows
    assert alipes("models", "unload", "other", *url).out == "unloaded other\n"
    listed = json.loads(alipes("models", "list", "--json", *url).out)
    assert {"name": "other", "version": "1", "state": "READY", "reason": ""} not in listed


def test_an_unknown_model_is_answered_with_those_there_are(server: ServerProcess) -> None:
    for verb in ("load", "unload"):
        done = alipes("models", verb, "doubel", "--url", server.http)
        assert (done.code, done.out) == (1, "")
        assert "the server has 'double'" in done.message
        check_readable(done)


def test_a_model_that_cannot_be_loaded_says_why(server: ServerProcess) -> None:
    done = alipes("models", "load", "broken", "--url", server.http)
    assert done.code == 1
    assert "does not define a class" in " ".join(done.err.split())
    check_readable(done)


def test_a_folder_without_a_model_leads_to_what_is_in_it(server: ServerProcess) -> None:
    done = alipes("models", "load", "empty", "--url", server.http)
    assert done.code == 1
    assert "alipes repo list" in done.message
    check_readable(done)


def test_a_server_that_loads_by_itself_names_the_flag(serve: Serve, repository: Path) -> None:
    server = serve(repository, "--exit-on-error=false")
    for verb in ("load", "unload"):
        done = alipes("models", verb, "double", "--url", server.http)
        assert (done.code, "--model-control-mode explicit" in done.message) == (1, True)
        check_readable(done)


def test_statistics_count_requests_failures_and_batches(serve: Serve, repository: Path) -> None:
    server = serve(repository, "--model-control-mode=explicit", "--load-model=double")
    url = ("--url", server.http)
    assert alipes("stats", *url).rows[1] == ["double", "1", "0", "0", "-", "-", "-", "-", "-"]
    for words in (["1,2"], ["[[1, 2], [3, 4]]"], ["[[1, 2], [3, 4]]"]):
        assert alipes("infer", *url, "double", *words).code == 0
    heading, row = alipes("stats", "double", *url).rows
    assert heading == ["model", "version", "requests", "failed", "queue", "input", "compute", "output", "batches"]
    assert row[:4] == ["double", "1", "3", "0"]
    assert row[-4:] == ["1", "(1),", "2", "(2)"]
    assert json.loads(alipes("stats", "--json", *url).out)[0]["inference_count"] == 5


def test_statistics_of_an_unknown_model_name_those_there_are(server: ServerProcess) -> None:
    done = alipes("stats", "doubel", "--url", server.http)
    assert (done.code, "'double'" in done.message) == (1, True)
    check_readable(done)


def test_where_no_server_is_the_verbs_say_how_to_start_one() -> None:
    for words in (["models", "list"], ["stats"], ["infer", "m", "1"], ["ask", "m", "1"]):
        done = alipes(*words, "--url", "http://127.0.0.1:1")
        assert done.code == 1
        assert "alipes serve REPOSITORY" in done.message
        check_readable(done)


@pytest.mark.parametrize("address", ["localhost:99999", "local host", "ftp://localhost"])
def test_an_address_that_is_none_is_wrong_usage(address: str) -> None:
    done = alipes("stats", "--url", address)
    assert (done.code, done.err.startswith("error: write --url as HOST:PORT")) == (2, True)
    check_readable(done)


def test_a_model_that_is_not_ready_leads_to_the_list(server: ServerProcess) -> None:
    alipes("models", "load", "broken", "--url", server.http)
    for model in ("broken", "empty"):
        done = alipes("infer", model, "1", "--url", server.http)
        assert (done.code, "alipes models list" in done.message) == (1, True)
        check_readable(done)

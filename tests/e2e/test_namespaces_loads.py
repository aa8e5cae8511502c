"""Namespaces while models come and go: ensembles use their own repository first, and requests name no namespace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, HttpEndpoint, Refusal
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import answer_of
from support.waiting import until

Serve = Callable[..., ServerProcess]

ENSEMBLE = """
platform: "ensemble" max_batch_size: 4
input { name: "X" data_type: TYPE_FP32 dims: 2 }
output { name: "Y" data_type: TYPE_FP32 dims: 2 }
ensemble_scheduling { step [ { model_name: "%s" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
"""
AMBIGUOUS = (
    "There are 2 identifiers of model 'both' in global map, model namespace must be provided to resolve ambiguity."
)


def add_ensemble(repository: Path, name: str, model: str) -> None:
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(ENSEMBLE % model)


@pytest.fixture
def repositories(tmp_path: Path) -> tuple[Path, Path]:
    """`both` is in both repositories, as 2 and 3; each has an ensemble of it, and one of a model of the other."""
    one, two = tmp_path / "one", tmp_path / "two"
    for repository, factor in ((one, 2.0), (two, 3.0)):
        add_model(repository, "both", times(factor))
        add_ensemble(repository, f"of_{repository.name}", "both")
    add_model(two, "single", times(4.0))
    add_ensemble(one, "across", "single")
    return one, two


def start(serve: Serve, repositories: tuple[Path, Path], *flags: str) -> ServerProcess:
    one, two = repositories
    return serve(one, f"--model-repository={two}", "--model-namespacing=true", *flags)


def test_an_ensemble_uses_the_models_of_its_own_repository_first(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = start(serve, repositories)
    assert [answer_of(server, name) for name in ("of_one", "of_two", "across")] == [2.0, 3.0, 4.0]
    with HttpEndpoint(server) as endpoint:
        assert endpoint.call("GET", "/v2/health/ready")[0].status == 200
        names = sorted(entry["name"] for entry in endpoint.indexes())
    assert names == ["across", "both", "both", "of_one", "of_two", "single"]


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_an_ambiguous_name_is_refused_by_every_kind_of_request(
    repositories: tuple[Path, Path], serve: Serve, kind: str
) -> None:
    server = start(serve, repositories)
    with ENDPOINTS[kind](server) as endpoint, HttpEndpoint(server) as http:
        with pytest.raises(Refusal) as refused:
            endpoint.ask("both", {"X": [1]})
        assert (refused.value.code, refused.value.text) == ("INVALID_ARGUMENT", AMBIGUOUS)
        for path in ("both", "both/config", "both/versions/1"):
            response, content = http.call("GET", f"/v2/models/{path}")
            assert (response.status, AMBIGUOUS in content.decode()) == (400, True), path
        assert http.call("GET", "/v2/models/both/ready")[0].status == 400
        statistics = http.call("GET", "/v2/models/stats")[1].decode()
        assert statistics.count('"name":"both"') == 2


@pytest.mark.slow("the repositories are polled twice")
def test_a_name_is_clear_again_once_one_repository_has_it(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = start(serve, repositories, "--model-control-mode=poll", "--repository-poll-secs=1")
    with HttpEndpoint(server) as endpoint:
        for entry in sorted((repositories[0] / "of_one").rglob("*"), reverse=True):
            entry.rmdir() if entry.is_dir() else entry.unlink()
        (repositories[0] / "of_one").rmdir()
        (repositories[0] / "both").rename(repositories[0].parent / "away")
        until(lambda: endpoint.is_ready("both"))
        assert answer_of(server, "both") == 3.0
        assert answer_of(server, "of_two") == 3.0
        (repositories[0].parent / "away").rename(repositories[0] / "both")
        until(lambda: not endpoint.is_ready("both"))
        assert answer_of(server, "of_two") == 3.0


def test_loads_and_unloads_take_every_repository_with_the_name(repositories: tuple[Path, Path], serve: Serve) -> None:
    flags = ("--model-control-mode=explicit", "--load-model=of_one", "--load-model=of_two")
    server = start(serve, repositories, *flags)
    with HttpEndpoint(server) as endpoint:
        assert [answer_of(server, name) for name in ("of_one", "of_two")] == [2.0, 3.0]
        endpoint.load("both")
        endpoint.load("across")
        assert answer_of(server, "across") == 4.0
        endpoint.unload("both")
        for name in ("of_one", "of_two"):
            assert not endpoint.is_ready(name)
        assert endpoint.is_ready("across")
        endpoint.load("both")
        assert [answer_of(server, name) for name in ("of_one", "of_two")] == [2.0, 3.0]

"""Namespaces: one name in several repositories, each with a model of its own."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import answer_of
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

AMBIGUOUS = (
    "There are 2 identifiers of model 'both' in global map, model namespace must be provided to resolve ambiguity."
)


@pytest.fixture
def repositories(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one", tmp_path / "two"
    add_model(one, "both", times(2.0))
    add_model(two, "both", times(3.0))
    add_model(two, "single", times(4.0))
    return one, two


def flags(repositories: tuple[Path, Path], *more: str) -> list[str]:
    return [f"--model-repository={repositories[1]}", *more]


def test_a_name_that_one_repository_has_is_served_as_ever(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = serve(repositories[0], *flags(repositories, "--model-namespacing=true"))
    assert answer_of(server, "single") == 4.0


def test_a_name_that_several_serve_is_refused_with_their_number(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = serve(repositories[0], *flags(repositories, "--model-namespacing=true"))
    with http_client.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException) as failure:
            client.get_model_metadata("both")
        assert (failure.value.status(), failure.value.message()) == ("400", AMBIGUOUS)
        index = client.get_model_repository_index()
        assert [(entry["name"], entry["state"]) for entry in index] == [
            ("both", "READY"),
            ("both", "READY"),
            ("single", "READY"),
        ]
    with grpc_client.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as failure:
            client.get_model_metadata("both")
        assert failure.value.message() == AMBIGUOUS


def test_metrics_tell_them_apart(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = serve(repositories[0], *flags(repositories, "--model-namespacing=true"))
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    for path in repositories:
        assert f'nv_inference_count{{model="both",namespace="{path}",version="1"}} 0' in text


def test_a_name_in_two_repositories_is_not_served(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = serve(repositories[0], *flags(repositories))
    assert answer_of(server, "single") == 4.0
    with http_client.InferenceServerClient(server.http) as client:
        assert not client.is_model_ready("both")
        (entry,) = (entry for entry in client.get_model_repository_index() if entry["name"] == "both")
        assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "model appears in two or more repositories")
        assert not client.is_server_ready()
    assert "failed to poll model 'both': not unique across all model repositories" in server.output


def test_a_load_request_loads_every_namespace_that_has_the_name(repositories: tuple[Path, Path], serve: Serve) -> None:
    server = serve(repositories[0], *flags(repositories, "--model-namespacing=true", "--model-control-mode=explicit"))
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("both")
        server.wait_for_output("(?s)(loading: both:1.*){2}")
        client.unload_model("both")
        assert not client.is_model_ready("both")

"""Several kinds of requests in one load, for one server or for several, over plain and encrypted connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes import ConfigError
from alipes.client import Client, Tls
from alipes.loadtest import Closed, Measuring, ModelRequests, Open, Share, run
from support.certificates import Authority, encrypted
from support.command import alipes
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[list[ServerProcess]]:
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(2.0, columns=3))
    add_model(repository, "triple", times(3.0, columns=3))
    yield [serve_module(repository), serve_module(repository)]


def executed(server: ServerProcess, model: str) -> int:
    with Client(f"http://{server.http}") as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


@pytest.mark.parametrize("pace", [Closed(3), Open.at(1000, seed=1)], ids=["closed", "open"])
def test_models_have_their_shares(servers: list[ServerProcess], pace: Closed | Open) -> None:
    server = servers[0]
    before = [executed(server, model) for model in ("double", "triple")]
    level = run(
        [("double", 3), ("triple", 1)], pace, address=f"http://{server.http}", measuring=Measuring(count=80, threads=2)
    ).levels[0]
    assert {name: window.answers for name, window in level.shares.items()} == {"double": 60, "triple": 20}
    assert level.result.answers == 80
    after = [executed(server, model) for model in ("double", "triple")]
    assert [late - early for late, early in zip(after, before, strict=True)] == [60, 20]


def test_servers_have_their_shares_over_both_protocols(servers: list[ServerProcess]) -> None:
    shares = [
        Share("double", address=f"http://{servers[0].http}", name="old"),
        Share("double", address=f"grpc://{servers[1].grpc}", name="new"),
    ]
    level = run(shares, Closed(2), measuring=Measuring(window_s=0.2, windows=3, warm_up_s=0.1)).levels[0]
    assert level.result.failures == {}
    old, new = (level.shares[name].answers for name in ("old", "new"))
    assert old > 10
    assert abs(old - new) <= 5 * len(level.windows), "they take turns"


def test_a_share_that_fails_leaves_the_others(servers: list[ServerProcess]) -> None:
    wrong = ModelRequests("double", parameters={"priority": -1})
    level = run(
        [Share("double", name="good"), Share(wrong, name="bad")],
        address=f"http://{servers[0].http}",
        measuring=Measuring(count=20),
    ).levels[0]
    assert (level.shares["good"].answers, level.shares["good"].failed) == (10, 0)
    assert (level.shares["bad"].answers, level.shares["bad"].failed) == (0, 10)


def test_each_model_is_sent_data_of_its_own(tmp_path: Path, serve: Serve) -> None:
    for columns in (2, 3):
        add_model(tmp_path / "models", f"of{columns}", times(columns=columns))
        np.savez(tmp_path / f"{columns}.npz", X=np.ones((5, 1, columns), np.float32))
    server = serve(tmp_path / "models")
    entries = ["--mix", "of2", "--mix", f"of3=2@grpc://{server.grpc}", "--mix", "of2:1@" + server.http]
    words = ["loadtest", "--url", server.http, *entries, "--count", "40", "--json"]
    done = alipes(*words, "--data", "of2=2.npz", "--data", "of3=3.npz", folder=tmp_path)
    assert done.code == 0, done.err
    [level] = json.loads(done.out)["levels"]
    assert [share["failed"] for share in level["shares"]] == [0, 0, 0]
    other = f"of2:1@{server.http}=3.npz"  # the entry goes before the model
    done = alipes(*words, "--data", "of2=2.npz", "--data", other, folder=tmp_path)
    assert done.code != 0
    assert "shape" in done.err


def test_mixes_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="the list of them is empty"):
        run([])
    with pytest.raises(ConfigError, match="weight"):
        Share("double", weight=0)


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_encrypted_connections_are_measured(tmp_path: Path, serve: Serve, wire: str) -> None:
    authority = Authority(tmp_path)
    add_model(tmp_path / "models", "double", times(columns=3))
    server = serve(tmp_path / "models", *encrypted(wire, authority.files("server")))
    address = f"{wire}s://{getattr(server, wire)}"
    tls = Tls(roots=authority.root)
    for stream in {False, wire == "grpc"}:
        requests = ModelRequests("double", stream=stream)
        level = run(requests, Closed(3), address=address, tls=tls, measuring=Measuring(count=60, threads=2)).levels[0]
        assert (level.result.answers, level.result.failures) == (60, {})

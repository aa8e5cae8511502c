"""Two servers, or two models of one, compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alipes.loadtest import Candidate, Closed, Measuring, Open, Posts, compare
from alipes.loadtest.pace import Pace
from support.command import alipes
from support.models import add_model, times
from support.scripted_latency import ScriptedLatency
from support.server import ServerProcess

SHORT = Measuring(window_s=0.5, warm_up_s=0.03)


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedLatency]:
    with ScriptedLatency() as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    folder = tmp_path_factory.mktemp("compared")
    add_model(folder, "double", versions=(1, 2), config="version_policy: { all { } }")
    add_model(folder, "triple", times(3.0))
    return serve_module(folder)


def candidates(server: ScriptedLatency, *times_ms: int) -> tuple[Candidate, Candidate]:
    first, second = (Candidate(f"{ms} ms", server.address, Posts("/", [b"%d" % ms])) for ms in times_ms)
    return first, second


def test_who_takes_fifty_times_as_long_is_seen_to(scripted: ScriptedLatency) -> None:
    order: list[int] = []
    seen = compare(
        *candidates(scripted, 2, 100),
        Closed(8),
        rounds=4,
        measuring=SHORT,
        each_round=lambda comparison: order.append(comparison.rounds),
    )
    assert order == [1, 2, 3, 4]
    assert seen.rate.value < 0.5
    assert seen.latency(50).value > 2
    assert "100 ms answers 0." in seen.conclusions()[0]


@pytest.mark.parametrize("pace", [Open.at(200), Open.at(200, seed=3)], ids=["even", "random"])
def test_an_open_loop_shows_it_in_the_latency_alone(scripted: ScriptedLatency, pace: Pace) -> None:
    seen = compare(*candidates(scripted, 2, 100), pace, rounds=4, measuring=SHORT)
    assert seen.latency(50).value > 2
    assert not seen.latency(99).is_known


def test_a_side_that_only_fails_ends_it(scripted: ScriptedLatency) -> None:
    first, _ = candidates(scripted, 5, 5)
    second = Candidate("broken", scripted.address, Posts("/", [b"error"]))
    seen = compare(first, second, rounds=4, measuring=Measuring(window_s=0.1, warm_up_s=0, error_budget=0.5))
    assert seen.rounds == 1
    assert any("broken: " in sentence and "it is scripted" in sentence for sentence in seen.conclusions())


def test_two_servers_are_compared(server: ServerProcess) -> None:
    addresses = (f"http://{server.http}", f"grpc://{server.grpc}")
    done = alipes("loadtest", "double", "--compare", *addresses, "--rounds=4", "--window=0.2", "--warm-up=0.02")
    assert (done.code, done.err) == (0, "")
    assert done.rows[0][:2] == list(addresses)
    assert [row[0] for row in done.rows[1:6]] == ["rate", "p50", "p90", "p99", "p99.9"]
    assert "the rate" in done.out or "times as many requests a second" in done.out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--compare", "double", "triple"], ["double", "triple"]),
        (["double", "--compare", "1", "2"], ["version 1", "version 2"]),
    ],
    ids=["models", "versions"],
)
def test_two_of_one_server_are_compared(server: ServerProcess, words: list[str], names: list[str]) -> None:
    done = alipes("loadtest", *words, f"--url={server.http}", "--rounds=4", "--window=0.2", "--warm-up=0.02", "--json")
    assert (done.code, done.err) == (0, "")
    shown = json.loads(done.out)
    assert [one["name"] for one in shown["candidates"]] == names
    assert all(one["answers"] > 0 and one["failed"] == 0 for one in shown["candidates"])
    assert set(shown["ratios"]) == {"rate", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms"}
    assert shown["conclusions"]


def test_an_unknown_model_is_refused_before_the_load(server: ServerProcess, tmp_path: Path) -> None:
    done = alipes("loadtest", "--compare", "double", "nobody", f"--url={server.http}")
    assert done.code == 1
    assert "nobody" in done.message

"""Answers that a load test checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes import ConfigError
from alipes.loadtest import Check, Closed, Measuring, ModelRequests, Posts, Sequences, Share, SharedMemoryRequests, run
from support.command import alipes
from support.models import add_model
from support.regions import ALLOWED
from support.scripted_latency import ScriptedLatency
from support.server import ServerProcess

DATA = np.arange(8, dtype=np.float32).reshape(4, 1, 2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    folder = tmp_path_factory.mktemp("checked")
    add_model(folder, "double")
    return serve_module(folder)


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    folder = tmp_path_factory.mktemp("sharing")
    add_model(folder, "double")
    return serve_module(folder, ALLOWED)


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedLatency]:
    with ScriptedLatency() as server:
        yield server


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("check", [Check(), Check({"Y": 2 * DATA})], ids=["equal", "expected"])
def test_good_answers_are_good(server: ServerProcess, wire: str, check: Check) -> None:
    report = run(
        ModelRequests("double", data={"X": DATA}),
        Closed(4),
        address=f"{wire}://{getattr(server, wire)}",
        measuring=Measuring(count=40, check=check),
    )
    level = report.levels[0]
    assert (level.checked, level.wrong) == (40, {})
    assert level.to_dict()["checked"] == 40


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_wrong_answers_are_counted(server: ServerProcess, wire: str) -> None:
    expected = 2 * DATA
    expected[1] = 0
    report = run(
        ModelRequests("double", data={"X": DATA}),
        address=f"{wire}://{getattr(server, wire)}",
        measuring=Measuring(count=40, check=Check({"Y": expected})),
    )
    level = report.levels[0]
    assert level.wrong == {"output 'Y' of request 1 is 4.0, not 0.0, at element 0": 10}
    assert any(note.startswith("10 of 40 answers that were checked are wrong") for note in level.notes())


def test_a_server_that_changes_its_mind_is_found_out(scripted: ScriptedLatency) -> None:
    requests, measuring = Posts("/", [b"count", b"0"]), Measuring(count=20, check=Check())
    level = run(requests, address=scripted.address, measuring=measuring).levels[0]
    assert level.result.answers == 20
    assert sum(level.wrong.values()) == 9


def test_windows_are_checked_each(server: ServerProcess) -> None:
    measuring = Measuring(window_s=0.1, windows=3, within=1e-9, warm_up_s=0, check=Check(samples=5))
    level = run(
        ModelRequests("double", shapes={"X": [2]}), address=f"http://{server.http}", measuring=measuring
    ).levels[0]
    assert len(level.windows) == 3
    for window in level.windows:
        # Where there are more answers than samples, every n-th is one: half of them at least.
        assert (min(5, window.answers) + 1) // 2 <= window.checked <= 5


def test_the_command_fails_where_answers_are_wrong(server: ServerProcess, tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", X=DATA)
    for name, factor in (("good", 2), ("bad", 3)):
        np.savez(tmp_path / f"{name}.npz", Y=factor * DATA)
    words = ["loadtest", "double", f"--url={server.http}", f"--data={tmp_path}/inputs.npz", "--count=8"]
    good = alipes(*words, f"--check={tmp_path}/good.npz")
    assert (good.code, good.err) == (0, "")
    assert alipes(*words, "--check=first").code == 0
    bad = alipes(*words, f"--check={tmp_path}/bad.npz")
    assert bad.code == 1
    assert "answers that were checked are wrong: output 'Y' of request 0 is 2.0, not 3.0, at element 1" in bad.out
    assert "answers are wrong" in bad.message


@pytest.mark.parametrize("option", ["--data", "--check"])
def test_a_file_that_holds_no_arrays_is_refused(server: ServerProcess, tmp_path: Path, option: str) -> None:
    (tmp_path / "arrays").write_text("none")
    for name in ("arrays", "nowhere"):
        done = alipes("loadtest", "double", f"--url={server.http}", f"{option}={tmp_path}/{name}")
        assert done.code == 2
        assert f"give {option} a file that np.savez wrote" in done.message


def test_each_share_of_a_mix_has_its_own_answers(server: ServerProcess) -> None:
    requests = ModelRequests("double", data={"X": DATA})
    shares = [
        Share(requests, name="good", check=Check({"Y": 2 * DATA})),
        Share(requests, name="bad", check=Check({"Y": 3 * DATA})),
        Share(requests, name="over gRPC", address=f"grpc://{server.grpc}"),
    ]
    measuring = Measuring(count=60, check=Check())
    level = run(shares, Closed(2), address=f"http://{server.http}", measuring=measuring).levels[0]
    assert [level.shares[name].checked for name in ("good", "bad", "over gRPC")] == [20, 20, 20]
    assert level.checked == 60
    assert level.shares["good"].wrong == level.shares["over gRPC"].wrong == {}
    assert sum(level.shares["bad"].wrong.values()) == sum(level.wrong.values()) == 20
    assert all(text.startswith("bad: output 'Y' of request ") for text in level.wrong)


@pytest.mark.parametrize("factor", [2, 3])
def test_answers_on_streams_are_checked(server: ServerProcess, factor: int) -> None:
    measuring = Measuring(count=40, check=Check({"Y": factor * DATA}))
    requests = ModelRequests("double", data={"X": DATA}, stream=True)
    level = run(requests, Closed(2), address=f"grpc://{server.grpc}", measuring=measuring).levels[0]
    assert level.checked == 40
    assert sum(level.wrong.values()) == (0 if factor == 2 else 40)


def test_outputs_in_shared_memory_are_not_checked(sharing: ServerProcess) -> None:
    address, plain = f"http://{sharing.http}", ModelRequests("double", data={"X": DATA})
    measuring = Measuring(count=8, check=Check())
    with SharedMemoryRequests(plain, address, output_bytes=64) as requests:
        for one in (requests, Sequences(requests, length=2)):
            with pytest.raises(ConfigError, match="outputs in shared memory are not checked"):
                run(one, address=address, measuring=measuring)
    with SharedMemoryRequests(plain, address) as requests:
        level = run(requests, address=address, measuring=measuring).levels[0]
    assert (level.checked, level.wrong) == (8, {})

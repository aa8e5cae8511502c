"""`alipes loadtest` and `alipes.loadtest` against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes import Client, ConfigError, NotFound
from alipes.loadtest import Closed, Measuring, ModelRequests, Open, Posts, Report, run
from support.command import alipes
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

SHORT = Measuring(window_s=0.1, windows=3, warm_up_s=0.05)

APP = """
import alipes


@alipes.model
def twice(x: float) -> float:
    if x < 0:
        raise ValueError("it is negative")
    return 2 * x
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("load-test")
    add_model(folder / "models", "double", times(2.0, "columns"))
    (folder / "app.py").write_text(APP)
    yield serve_module(folder / "app.py", str(folder / "models"))


def executed(server: ServerProcess, model: str = "double") -> int:
    with Client(server.http) as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


def total(report: Report) -> tuple[int, int]:
    """Answers and failures of all windows."""
    windows = [window for level in report.levels for window in level.windows]
    return sum(window.answers for window in windows), sum(window.failed for window in windows)


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("pace", [Closed(4), Open.at(500), Open.at(500, seed=1)], ids=["closed", "even", "random"])
def test_as_many_are_answered_as_the_server_executed(server: ServerProcess, wire: str, pace: Closed | Open) -> None:
    before = executed(server)
    requests = ModelRequests("double", shapes={"X": [3]})
    report = run(requests, pace, address=f"{wire}://{getattr(server, wire)}", measuring=Measuring(count=100, threads=2))
    assert total(report) == (100, 0)
    assert executed(server) - before == 100
    level = report.levels[0]
    assert level.result.latencies.count == level.result.lateness.count == level.result.queueing.count == 100
    assert 0 < level.result.latencies.percentile_ms(50) <= level.result.latencies.max_ms


def test_a_duration_is_measured_to_its_end(server: ServerProcess) -> None:
    command = ["loadtest", "double", "--shape=X:3", f"--url=http://{server.http}", "--duration=0.8", "--window=0.1"]
    # All windows agree: without the duration the level would end with the third.
    done = alipes(*command, "--within=100000", "--warm-up=0", "--json", "-c", "2")
    assert done.code == 0, done.err
    [level] = json.loads(done.out)["levels"]
    assert (level["load"], level["windows"]) == (2, 8)


def test_a_load_test_takes_the_short_options_of_others(server: ServerProcess) -> None:
    done = alipes("loadtest", "twice", f"--url=http://{server.http}", "-c", "2", "-n", "20", "--json")
    assert done.code == 0, done.err
    [level] = json.loads(done.out)["levels"]
    assert level["answers"] == 20


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_levels_are_measured_in_windows(server: ServerProcess, wire: str) -> None:
    seen: list[tuple[float, int]] = []
    report = run(
        ModelRequests("double", shapes={"X": [3]}, batch=4),
        [Closed(1), Closed(3)],
        address=f"{wire}://{getattr(server, wire)}",
        measuring=SHORT,
        each_window=lambda pace, windows: seen.append((pace.value, len(windows))),
    )
    assert [pace for pace, _ in seen] == [1, 1, 1, 3, 3, 3]
    assert [level.pace for level in report.levels] == [Closed(1), Closed(3)]
    answers, failed = total(report)
    assert answers > 0
    assert failed == 0


def test_arrays_are_sent_in_turn(server: ServerProcess) -> None:
    data = {"X": np.arange(6, dtype=np.float32).reshape(3, 1, 2)}
    report = run(ModelRequests("double", data=data), address=f"http://{server.http}", measuring=Measuring(count=6))
    assert total(report) == (6, 0)


def test_a_function_is_loaded_by_its_endpoint(server: ServerProcess) -> None:
    """Each second body is refused: the level goes on and counts it."""
    bodies = [b'{"x": 2}', b'{"x": -1}', b'{"x": "a"}', b'{"x": 1.5}']
    report = run(Posts("/twice", bodies), Closed(2), address=f"http://{server.http}", measuring=Measuring(count=40))
    assert total(report) == (20, 20)
    failures = report.levels[0].result.failures
    assert sum(failures.values()) == 20
    assert any("$.x" in text for text in failures)


def test_what_cannot_be_sent_is_refused_before_the_load(server: ServerProcess) -> None:
    address = f"http://{server.http}"
    with pytest.raises(NotFound, match="nobody"):
        run("nobody", address=address, measuring=SHORT)
    with pytest.raises(ConfigError, match=r"shape \[-1\], where -1 is any size"):
        run("double", address=address, measuring=SHORT)
    with pytest.raises(ConfigError, match=r"has the shape \[-1\], not \[1, 2\]"):
        run(ModelRequests("double", shapes={"X": [1, 2]}), address=address, measuring=SHORT)
    with pytest.raises(ConfigError, match="no input 'Y'"):
        run(ModelRequests("double", shapes={"Y": [1]}), address=address, measuring=SHORT)


def test_figures_are_printed_as_a_table(server: ServerProcess) -> None:
    done = alipes(
        "loadtest",
        "double",
        f"--url=http://{server.http}",
        "--callers=1,2",
        "--shape=X:2",
        "--window=0.1",
        "--windows=3",
    )
    assert (done.code, done.err) == (0, "")
    assert [row[:3] for row in done.rows[1:3]] == [["1", "in", "flight"], ["2", "in", "flight"]]


def test_figures_are_printed_as_json(server: ServerProcess) -> None:
    done = alipes(
        "loadtest", "double", f"--url=grpc://{server.grpc}", "--rate=200", "--count=20", "--shape=X:2", "--json"
    )
    assert (done.code, done.err) == (0, "")
    level = json.loads(done.out)["levels"][0]
    assert (level["loop"], level["load"], level["answers"], level["failed"]) == ("open", 200, 20, 0)


def test_a_file_is_sent_to_any_path(server: ServerProcess, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"x": 3}')
    done = alipes("loadtest", f"--url=http://{server.http}", "--path=/twice", f"--body={body}", "--count=5", "--json")
    assert json.loads(done.out)["levels"][0]["answers"] == 5
    typed = alipes("loadtest", f"--url=http://{server.http}", "--path=/twice", '--body={"x": 3}', "--count=5", "--json")
    assert json.loads(typed.out)["levels"][0]["answers"] == 5


def test_a_server_that_goes_away_leaves_what_was_measured(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path / "models", "double", times())
    server = serve(tmp_path / "models")
    command = [sys.executable, "-m", "alipes", "loadtest", "double", f"--url=http://{server.http}", "--window=0.2"]
    tester = subprocess.Popen(
        [*command, "--warm-up=0", "--windows=1000", "--within=0.1", "--error-budget=50"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: executed(server) > 10)
        server.stop()
        out, _ = tester.communicate(timeout=TIMEOUT_S)
    finally:
        tester.kill()
        tester.wait()
    assert tester.returncode == 0
    assert "1 in flight" in out
    assert "failed: " in out


def test_a_load_test_ends_with_a_signal(server: ServerProcess) -> None:
    command = [sys.executable, "-m", "alipes", "loadtest", "double", f"--url=http://{server.http}", "--shape=X:2"]
    before = executed(server)
    with subprocess.Popen([*command, "--count=1000000000"], stderr=subprocess.PIPE, text=True) as tester:
        try:
            until(lambda: executed(server) > before + 10)
            tester.send_signal(signal.SIGINT)
            _, err = tester.communicate(timeout=TIMEOUT_S)
        finally:
            tester.kill()
    assert tester.returncode == 130
    assert "Traceback" not in err

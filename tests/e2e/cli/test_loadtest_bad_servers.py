"""Servers that are not there, go away, fail, hang or talk nonsense, and people who have waited enough."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from alipes import Client
from support.command import alipes_process, check_readable
from support.models import add_model
from support.ports import unused_address
from support.scripted_latency import ScriptedLatency
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

pytestmark = pytest.mark.slow("each test runs the command as a process, or two")

Serve = Callable[..., ServerProcess]


@pytest.fixture
def scripted() -> Iterator[ScriptedLatency]:
    with ScriptedLatency() as server:
        yield server


@pytest.fixture
def post(scripted: ScriptedLatency, tmp_path: Path) -> Callable[..., list[str]]:
    """The words of a load test that posts these bodies."""

    def words(*bodies: str) -> list[str]:
        names = []
        for number, body in enumerate(bodies):
            (tmp_path / f"body{number}").write_text(body)
            names.append(f"--body={tmp_path}/body{number}")
        return ["loadtest", f"--url={scripted.address}", "--path=/", *names, "--warm-up=0"]

    return words


class Running:
    """`alipes loadtest` as a process."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "alipes", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> subprocess.Popen[str]:
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("scheme", ["http://", "grpc://", ""])
def test_nobody_there_is_one_line(scheme: str) -> None:
    done = alipes_process("loadtest", "m", f"--url={scheme}{unused_address()}")
    assert (done.code, done.out) == (1, "")
    check_readable(done)
    assert "start a server with `alipes serve REPOSITORY`" in done.message


def test_a_path_at_nobody_s_has_failures_alone(tmp_path: Path) -> None:
    (tmp_path / "body").write_text("1")
    words = ["loadtest", "--path=/", f"--body={tmp_path}/body", "--count=5", "--warm-up=0"]
    done = alipes_process(*words, f"--url=http://{unused_address()}")
    assert done.code == 1
    check_readable(done)
    assert "failed: " in done.out
    assert "no request was answered" in done.err


def test_a_server_that_dies_leaves_what_was_measured(post: Callable[..., list[str]]) -> None:
    done = alipes_process(*post(*["1"] * 20, "die"), "--window=0.5", "--windows=2", "--error-budget=50")
    assert (done.code, done.err) == (0, "")
    assert "1 in flight" in done.out
    assert "1 failed: the server closed the connection before it had answered" in done.out


@pytest.mark.parametrize(
    ("body", "text"), [("error", "it is scripted"), ("garbage", "failed: "), ("close", "failed: ")]
)
def test_bad_answers_are_counted_by_what_they_are(post: Callable[..., list[str]], body: str, text: str) -> None:
    # By the number of requests: on a busy machine nothing may come back within a short window.
    alone = alipes_process(*post(body), "--count=5")
    assert alone.code == 1
    check_readable(alone)
    assert text in alone.out
    mixed = alipes_process(*post("1", body), "--count=20")
    assert (mixed.code, mixed.err) == (0, "")
    assert "10 failed: " in mixed.out
    assert text in mixed.out


def test_a_server_that_hangs_ends_the_level(post: Callable[..., list[str]]) -> None:
    done = alipes_process(*post("hang"), "--window=0.2", "--windows=2")
    assert done.code == 1
    check_readable(done)
    assert "no answer came within 0.4" in done.out


def test_a_count_ends_when_nothing_comes_any_more(post: Callable[..., list[str]]) -> None:
    done = alipes_process(*post("1", "1", "hang"), "--count=10", "--silence=0.5")
    assert (done.code, done.err) == (0, "")
    assert "1 in flight" in done.out


def test_shapes_that_do_not_fit_are_one_line(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path, "double")
    server = serve(tmp_path)
    done = alipes_process("loadtest", "double", f"--url={server.http}", "--shape=X:3")
    assert (done.code, done.out) == (1, "")
    check_readable(done)
    assert "has the shape [2], not [3]" in done.message


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_a_model_that_is_unloaded_leaves_what_was_measured(tmp_path: Path, serve: Serve, wire: str) -> None:
    add_model(tmp_path, "double")
    server = serve(tmp_path, "--model-control-mode=explicit", "--load-model=double")
    words = ["loadtest", "double", f"--url={wire}://{getattr(server, wire)}", "--window=0.2", "--warm-up=0"]
    with (
        Client(server.http) as client,
        Running(*words, "--windows=1000", "--within=0.1", "--error-budget=50") as tester,
    ):
        until(lambda: client.statistics("double")[0]["inference_stats"]["success"]["count"] > 10)
        client.unload("double")
        out, err = tester.communicate(timeout=TIMEOUT_S)
    assert (tester.returncode, err) == (0, "")
    assert "failed: " in out
    assert "double" in out


@pytest.mark.parametrize("load", [["--callers=2", "--windows=1000", "--within=0.1"], ["--rate=200", "--count=100000"]])
def test_who_interrupts_gets_what_was_measured(
    scripted: ScriptedLatency, post: Callable[..., list[str]], tmp_path: Path, load: list[str]
) -> None:
    file = tmp_path / "levels.csv"
    with Running(*post("1"), *load, "--window=0.1", f"--save={file}") as tester:
        until(lambda: len(scripted.record()) > 100)
        children = psutil.Process(tester.pid).children(recursive=True)
        tester.send_signal(signal.SIGINT)
        out, err = tester.communicate(timeout=TIMEOUT_S)
    assert (tester.returncode, err) == (130, "interrupted\n")
    assert ("2 in flight" if "--callers=2" in load else "200/s random") in out
    assert len(file.read_text().splitlines()) == 2
    # Whoever adopts them takes note of their end a moment later.
    until(lambda: not any(child.is_running() for child in children), "a process of the load test is left")


def test_who_interrupts_a_comparison_gets_its_rounds(post: Callable[..., list[str]], scripted: ScriptedLatency) -> None:
    words = [*post("1"), "--compare", scripted.address, scripted.address, "--window=0.05", "--rounds=1000"]
    with Running(*words) as tester:
        until(lambda: len(scripted.record()) > 300)
        tester.send_signal(signal.SIGINT)
        out, err = tester.communicate(timeout=TIMEOUT_S)
    assert (tester.returncode, err) == (130, "interrupted\n")
    assert "rate" in out


def test_who_interrupts_at_once_gets_one_line(post: Callable[..., list[str]], scripted: ScriptedLatency) -> None:
    with Running(*post("1"), "--warm-up=1000") as tester:
        until(lambda: len(scripted.record()) > 0)
        tester.send_signal(signal.SIGINT)
        out, err = tester.communicate(timeout=TIMEOUT_S)
    assert (tester.returncode, out, err) == (130, "", "interrupted before anything was measured\n")

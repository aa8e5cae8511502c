"""`alipes quickstart`, as a person runs it: its output, its exit code, and what it leaves behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

TIMEOUT_S = 100.0
COMMAND = [sys.executable, "-m", "alipes", "quickstart"]


class Tour:
    """A running quickstart."""

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        """Starts it, with a folder of its own for temporary files."""
        self.folder = folder
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"} | (environment or {}),
            text=True,
            start_new_session=True,
        )
        self.printed = ""

    def read_until(self, pattern: str) -> re.Match[str]:
        """Reads the output until a line matches."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no {pattern!r} in:\n{self.printed}")

    def server(self) -> psutil.Process:
        """The server that it started."""
        (child,) = psutil.Process(self.process.pid).children()
        return child

    def finish(self) -> int:
        """Reads the rest and returns the exit code."""
        rest, _ = self.process.communicate(timeout=TIMEOUT_S)
        self.printed += rest
        return self.process.returncode


@pytest.fixture
def tours(tmp_path: Path) -> Iterator[list[Tour]]:
    """Tours that end with the test."""
    started: list[Tour] = []
    yield started
    for tour in started:
        if tour.process.poll() is None:
            tour.process.kill()
        tour.process.communicate()


def test_the_tour_shows_every_protocol_and_leaves_nothing_behind(tmp_path: Path, tours: list[Tour]) -> None:
    tour = Tour(tmp_path, "--seconds=0.5")
    tours.append(tour)
    assert tour.finish() == 0, tour.printed
    accuracies = dict(re.findall(r"^(HTTP, JSON|HTTP, binary|gRPC) .* (\d+\.\d) %", tour.printed, re.MULTILINE))
    assert len(accuracies) == 3, tour.printed
    assert all(float(accuracy) > 96 for accuracy in accuracies.values())
    assert re.search(r"\d requests/s +p50 \d+\.\d+ ms +p99 \d+\.\d+ ms +0 failed", tour.printed)
    assert "truth" in tour.printed
    assert re.search(r"^ +\S*alipes serve ", tour.printed, re.MULTILINE)
    assert "exit status 0" in tour.printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow("measures a load for seconds")
def test_the_load_is_batched(tmp_path: Path, tours: list[Tour]) -> None:
    # As long as that, so that the machine has time for more than the first requests.
    tour = Tour(tmp_path, "--seconds=4")
    tours.append(tour)
    assert tour.finish() == 0, tour.printed
    table = tour.printed[tour.printed.index("batch size") :]
    sizes = re.findall(r"^ *(\d+)(?:-(\d+))? +[\d,]+ +[\d,]+ +\d+\.\d+ +\d+\.\d+", table, re.MULTILINE)
    assert sizes, table
    assert max(int(last or first) for first, last in sizes) > 1, table


def test_a_server_left_running_answers_the_printed_commands(tmp_path: Path, tours: list[Tour]) -> None:
    tour = Tour(tmp_path, "--keep", "--seconds=0.2")
    tours.append(tour)
    tour.read_until("keeps running")
    server = tour.server()
    commands = re.findall(r"^ +(curl .*)$", tour.printed, re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        answer = subprocess.run([*shlex.split(command), "--fail"], capture_output=True, text=True, check=True)
        assert "digits" in answer.stdout
    program = tour.printed[tour.printed.index("  import json") :].split("\n#")[0]
    source = "\n".join(line.removeprefix("  ") for line in program.splitlines())
    answer = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert int(answer.stdout) in range(10)
    tour.process.send_signal(signal.SIGINT)
    assert tour.finish() == 0, tour.printed
    assert not server.is_running()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_the_middle_stops_the_server_too(
    tmp_path: Path, tours: list[Tour], number: signal.Signals, code: int
) -> None:
    tour = Tour(tmp_path, "--seconds=60")
    tours.append(tour)
    tour.read_until("over every protocol")
    server = tour.server()
    tour.process.send_signal(number)
    assert tour.finish() == code, tour.printed
    assert "Traceback" not in tour.printed
    assert not server.is_running()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_tour_takes_its_server_along(tmp_path: Path, tours: list[Tour]) -> None:
    tour = Tour(tmp_path, "--seconds=60")
    tours.append(tour)
    tour.read_until("over every protocol")
    server = tour.server()
    tour.process.kill()
    tour.finish()
    server.wait(TIMEOUT_S)


def test_a_model_that_cannot_load_is_explained(tmp_path: Path, tours: list[Tour]) -> None:
    """The package is found, but holds no library: as after an installation that broke."""
    broken = tmp_path / "broken" / "onnxruntime"
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    tour = Tour(temporary, "--seconds=0.2", environment={"PYTHONPATH": str(broken.parent)})
    tours.append(tour)
    assert tour.finish() == 1
    assert "quickstart failed: the model 'digits' could not be loaded" in tour.printed
    assert "pip install" in tour.printed
    assert re.search(r"^ +\S*alipes serve ", tour.printed, re.MULTILINE)
    assert "Traceback" not in tour.printed
    assert list(temporary.iterdir()) == []


def test_the_tour_speaks_grpc_where_grpcio_is_not_installed(tmp_path: Path, tours: list[Tour]) -> None:
    """A finder in front of all others hides the package."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Hide:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        return None if name == 'grpc' else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(PathFinder)] = Hide\n"
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    tour = Tour(temporary, "--seconds=0.2", environment={"PYTHONPATH": str(hidden)})
    tours.append(tour)
    assert tour.finish() == 0, tour.printed
    assert re.search(r"^gRPC .* %", tour.printed, re.MULTILINE)


def test_copied_files_are_announced_and_never_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "with spaces"
    command = [*COMMAND, "--copy-to", str(target)]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    assert str(target / "models") in first.stdout
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "is not an empty folder" in again.stderr


def test_wrong_options_are_a_one_line_error(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "--seconds=-1"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "--seconds" in done.stderr
    assert "Traceback" not in done.stderr

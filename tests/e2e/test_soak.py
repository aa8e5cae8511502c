"""The soak itself: a minute passes on a server as it is, and a model that keeps memory on purpose is found."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.soak.faults import FAULTS
from support.waiting import until

pytestmark = pytest.mark.proof

TESTS = Path(__file__).parents[1]


def soak(folder: Path, seconds: int, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.soak", str(folder), str(seconds), *more]
    return subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def grown(output: str) -> set[str]:
    """The first words of the lines of series that grow."""
    return {line.partition("  ")[0] for line in output.splitlines() if line.endswith("GROWS")}


@pytest.mark.timeout(600)
def test_a_minute_of_faults_leaves_a_server_as_it_was(tmp_path: Path) -> None:
    process = soak(tmp_path, 60)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    names = [line.split()[1] for line in (tmp_path / "faults.log").read_text().splitlines()]
    assert set(names) == {fault.__name__ for fault in FAULTS}, output
    with (tmp_path / "samples.csv").open(newline="") as file:
        samples = list(csv.DictReader(file))
    assert len(samples) > 20
    assert all(float(sample["mistakes"]) == 0 for sample in samples)
    assert {"slopes.svg", "slopes.txt", "server.log"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.timeout(600)
def test_a_model_that_keeps_memory_is_found(tmp_path: Path) -> None:
    process = soak(tmp_path, 60, "--leak")
    output, _ = process.communicate()
    assert process.returncode == 1, output
    assert grown(output) == {"Memory of server and workers"}, output
    assert "wrong:" not in output


@pytest.mark.timeout(600)
def test_an_interrupt_ends_it_with_a_table_and_a_picture(tmp_path: Path) -> None:
    process = soak(tmp_path, 3600)
    samples = tmp_path / "samples.csv"
    until(lambda: samples.exists() and len(samples.read_text().splitlines()) > 3, "nothing is sampled")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "Memory of the server" in (tmp_path / "slopes.txt").read_text()
    assert (tmp_path / "slopes.svg").exists()


@pytest.mark.timeout(600)
def test_a_server_that_ends_is_a_failure(tmp_path: Path) -> None:
    process = soak(tmp_path, 3600)
    samples = tmp_path / "samples.csv"
    until(lambda: samples.exists() and len(samples.read_text().splitlines()) > 3, "nothing is sampled")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (server,) = [pid for pid in children if b"\0serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    subprocess.run(["kill", "-KILL", server], check=True)
    output, _ = process.communicate()
    assert process.returncode == 1, output
    assert "the server ended" in output

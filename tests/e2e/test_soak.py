"""The soak itself: a round of faults goes well, and a model that keeps memory on purpose is found."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.soak.faults import FAULTS
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.alone, pytest.mark.timeout(1200)]

TESTS = Path(__file__).parents[1]

# In a calm soak the heap has its size after so many seconds; a minute of samples is enough for a slope then.
WARM_UP_S = 20
SAMPLES = WARM_UP_S + 60
# On a busy machine that takes several times as long.
LONGEST_S = 900.0


class Soak:
    """A soak that is under way, and its folder."""

    def __init__(self, folder: Path, *more: str) -> None:
        command = [sys.executable, "-m", "support.soak", str(folder), "3600", *more]
        self.process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._folder = folder

    def wait_for(self, count: int, file: str) -> None:
        """Returns once a file has so many lines."""
        until(
            lambda: len(self.lines(file)) >= count or self.process.poll() is not None, f"{file} stays short", LONGEST_S
        )

    def lines(self, file: str) -> list[str]:
        path = self._folder / file
        return path.read_text().splitlines() if path.exists() else []

    def interrupt(self) -> str:
        """Ctrl-C; gives what it prints."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate()[0]


@contextmanager
def soaking(folder: Path, *more: str) -> Iterator[Soak]:
    soak = Soak(folder, *more)
    try:
        yield soak
    finally:
        if soak.process.poll() is None:
            soak.interrupt()


def grown(output: str) -> set[str]:
    """The first words of the lines of series that grow."""
    return {line.partition("  ")[0] for line in output.splitlines() if line.endswith("GROWS")}


def test_a_round_has_each_fault_once_and_nothing_goes_wrong(tmp_path: Path) -> None:
    with soaking(tmp_path) as soak:
        # One more: the last of the round has ended.
        soak.wait_for(len(FAULTS) + 1, "faults.log")
        output = soak.interrupt()
    assert soak.process.returncode == 0, output
    begun = [line.split()[1] for line in soak.lines("faults.log")]
    assert sorted(begun[: len(FAULTS)]) == sorted(fault.__name__ for fault in FAULTS)
    with (tmp_path / "samples.csv").open(newline="") as file:
        assert {sample["mistakes"] for sample in csv.DictReader(file)} == {"0"}
    # The heap still grows, and nothing is judged: that takes the minutes that the soak of the proof has.
    assert "soak: too short for a verdict: its warm-up takes 120 s" in output
    assert {"slopes.svg", "slopes.txt", "server.log"} <= {path.name for path in tmp_path.iterdir()}


def test_a_model_that_keeps_memory_is_found(tmp_path: Path) -> None:
    with soaking(tmp_path, "--leak", "--calm", f"--warm-up={WARM_UP_S}") as soak:
        soak.wait_for(SAMPLES, "samples.csv")
        output = soak.interrupt()
    assert soak.process.returncode == 1, output
    assert "Memory of server and workers" in grown(output), output
    assert "Memory of the server" not in grown(output), output
    assert output.count("flat") == 4
    assert soak.lines("faults.log") == []


def test_a_server_that_ends_is_a_failure(tmp_path: Path) -> None:
    with soaking(tmp_path) as soak:
        soak.wait_for(3, "samples.csv")
        children = Path(f"/proc/{soak.process.pid}/task/{soak.process.pid}/children").read_text().split()
        (server,) = [pid for pid in children if b"\0serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        subprocess.run(["kill", "-KILL", server], check=True)
        output, _ = soak.process.communicate()
    assert soak.process.returncode == 1, output
    assert "the server ended" in output

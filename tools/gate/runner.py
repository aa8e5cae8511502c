"""Runs stages one after the other, and says what each took."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stages import PROOF, Stage

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path("build", "reports")  # in `ROOT`
LEFT_OUT = 77  # a stage's exit code where this machine lacks what it tests

# Most tests wait for a server or a clock, so more processes than cores keep the cores at work. With three for each core
# a slow machine had twenty threads that waited for one, and tests that time requests failed.
PROCESSES_PER_CORE = 2


@dataclass(frozen=True)
class Outcome:
    """How a stage ended.

    Attributes:
        stage: The stage.
        verdict: `passed`, `failed`, `over budget`, `left out` or `not run`.
        took_s: How long it ran, in seconds.
        cpu_s: What its processes took of the cores, user and system, in seconds. Other load hardly moves it. What a
            process leaves running when it ends is not in it.
    """

    stage: Stage
    verdict: str
    took_s: float
    cpu_s: float = 0.0

    @property
    def fails(self) -> bool:
        """Whether the gate fails by it. A stage that was not run fails by the one that it needs."""
        return self.verdict in {"failed", "over budget"}


def new_seed() -> int:
    """The seed of an order that no run had before."""
    return random.randrange(2**32)


def run(stages: Sequence[Stage], command: str, shuffle: int | None = None) -> Iterator[Outcome]:
    """Runs the stages in order; a stage runs where none of those that it needs has failed.

    `shuffle` is the seed of the order of Python's tests within a stage; without it they run as they are written.
    """
    environment = os.environ | variables(command)
    if shuffle is not None:
        environment |= {"PYTEST_ADDOPTS": f"-p randomly --randomly-seed={shuffle}"}
    missed: set[str] = set()
    for stage in stages:
        needs_missed = missed.intersection(stage.needs)
        outcome = Outcome(stage, "not run", 0.0) if needs_missed else _one(stage, environment)
        if outcome.verdict in {"failed", "not run"}:
            missed.add(stage.name)
        yield outcome


def variables(command: str) -> Mapping[str, str]:
    """What the commands of stages may use."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    proof = command == PROOF
    return {
        "PYTHON": sys.executable,
        "VERSION": version,
        "PROCESSES": str(PROCESSES_PER_CORE * (os.cpu_count() or 1)),
        "WHEEL": "release" if proof else "gate",
        "WHEELS": "dist" if proof else "dist/gate",
        "NEXTEST": "proof" if proof else "gate",
        "INTERPRETERS": "all" if proof else "newest",
        # The long forms of tests belong to the proof.
        "EXTENT": "(proof or not proof)" if proof else "not proof",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@contextmanager
def _kept(log: Path) -> Iterator[IO[bytes]]:
    """A pipe whose bytes are printed, and kept in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    tee = subprocess.Popen(["tee", log], stdin=subprocess.PIPE)
    assert tee.stdin is not None
    with tee.stdin:
        yield tee.stdin
    # What a stage left running may hold the pipe open.
    with suppress(subprocess.TimeoutExpired):
        tee.wait(timeout=5)


def log_of(stage: Stage) -> Path:
    """Where the output of a stage is kept."""
    return ROOT / LOGS / f"{stage.name.replace(' ', '-')}.log"


def _one(stage: Stage, environment: Mapping[str, str]) -> Outcome:
    print(f"\n» {stage.name}: {stage.proves}", flush=True)
    began = time.monotonic()
    with _kept(log_of(stage)) as output:
        code, cpu_s = _executed(stage.command, environment, output)
    took_s = time.monotonic() - began
    if code == LEFT_OUT:
        verdict = "left out"
    elif code != 0:
        verdict = "failed"
    elif cpu_s > stage.budget_s:
        verdict = "over budget"
    else:
        verdict = "passed"
    print(f"» {stage.name}: {verdict} after {took_s:.0f} s, {cpu_s:.0f} s of the cores", flush=True)
    return Outcome(stage, verdict, took_s, cpu_s)


def _executed(command: str, environment: Mapping[str, str], output: IO[bytes]) -> tuple[int, float]:
    """The exit code of a command, and the CPU seconds of its process and all that were waited for beneath it."""
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime

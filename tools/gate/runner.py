"""Runs stages, two at a time where they leave each other room, and says what each took."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stages import PROOF, WHOLE_MACHINE, Stage

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path("build", "reports")  # in `ROOT`
LEFT_OUT = 77  # a stage's exit code where this machine lacks what it tests
AT_ONCE = 2  # stages; a third would only take the cores from the tests of another

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
    """Runs the stages, two at a time where they leave each other room; gives each outcome as it comes.

    A stage begins when those that it needs have ended, and does not where one of them has failed. `shuffle` is the seed
    of the order of Python's tests within a stage; without it they run as they are written.
    """
    environment = os.environ | variables(command)
    if shuffle is not None:
        environment |= {"PYTEST_ADDOPTS": f"-p randomly --randomly-seed={shuffle}"}
    waiting, missed = list(stages), set[str]()
    running: dict[Future[Outcome], Stage] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while waiting or running:
            for stage in [stage for stage in waiting if missed.intersection(stage.needs)]:
                waiting.remove(stage)
                missed.add(stage.name)
                yield Outcome(stage, "not run", 0.0)
            while (stage := next_to_begin(waiting, [*running.values()])) is not None:
                waiting.remove(stage)
                print(f"» {stage.name} begins: {stage.proves}", flush=True)
                running[pool.submit(_one, stage, environment)] = stage
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                del running[ended]
                outcome = ended.result()
                _show(outcome)
                if outcome.verdict == "failed":
                    missed.add(outcome.stage.name)
                yield outcome


def next_to_begin(waiting: Sequence[Stage], running: Sequence[Stage]) -> Stage | None:
    """The first stage that may begin beside those that run: none that goes first is left, and there is room for it."""
    unfinished = {stage.name for stage in [*waiting, *running]}
    room = WHOLE_MACHINE - sum(stage.takes for stage in running)
    if len(running) == AT_ONCE:
        return None
    may = (one for one in waiting if one.takes <= room and not unfinished.intersection([*one.needs, *one.after]))
    return next(may, None)


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


def log_of(stage: Stage) -> Path:
    """Where the output of a stage is kept."""
    return ROOT / LOGS / f"{stage.name.replace(' ', '-')}.log"


def _one(stage: Stage, environment: Mapping[str, str]) -> Outcome:
    log = log_of(stage)
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("wb") as output:
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
    return Outcome(stage, verdict, took_s, cpu_s)


def _show(outcome: Outcome) -> None:
    """Prints what a stage that has ended wrote, so that the output of two never mixes."""
    name = outcome.stage.name
    print(f"\n» {name} wrote:", flush=True)
    with log_of(outcome.stage).open(encoding="utf-8", errors="replace") as log:
        shutil.copyfileobj(log, sys.stdout)
    print(f"» {name}: {outcome.verdict} after {outcome.took_s:.0f} s, {outcome.cpu_s:.0f} s of the cores", flush=True)


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

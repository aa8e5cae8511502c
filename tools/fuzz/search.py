"""One fuzzer at a time: what it tries, and what libFuzzer says of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from record import CORPORA, Found

ROOT = Path(__file__).resolve().parents[2]
COVERED = re.compile(r"^#\d+\s+\w+\s+cov: (\d+)", re.MULTILINE)
TRIED = re.compile(r"^(?:stat::number_of_executed_units:\s+|#)(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Fuzzer:
    """A fuzzer that can be run.

    Attributes:
        name: Names its corpus.
        command: What starts it.
        is_python: Whether it takes folder and seconds as arguments, not by its environment.
    """

    name: str
    command: Sequence[str]
    is_python: bool = False


def named(fuzzers: Sequence[Fuzzer], names: Sequence[str]) -> list[Fuzzer]:
    """The fuzzers with these names, or all of them.

    Raises:
        SystemExit: If there is none of a name.
    """
    if unknown := set(names) - {fuzzer.name for fuzzer in fuzzers}:
        raise SystemExit(f"no fuzzer is named {', '.join(sorted(unknown))}")
    return [fuzzer for fuzzer in fuzzers if not names or fuzzer.name in names]


def run(fuzzer: Fuzzer, seconds: int) -> Found:
    """Searches for so long, or until an input breaks a promise, which is shown."""
    environment = os.environ | {
        "ALIPES_FUZZ": "run",
        "ALIPES_FUZZ_FOLDER": str(CORPORA),
        "ALIPES_FUZZ_SECONDS": str(seconds),
        "PYTHONPATH": str(ROOT / "tests"),
    }
    command = [*fuzzer.command, *([str(CORPORA), str(seconds)] if fuzzer.is_python else [])]
    log = CORPORA / fuzzer.name / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    said = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode != 0:
        sys.stdout.write("\n".join(said.splitlines()[-40:]) + "\n")
    inputs = max((int(number) for number in TRIED.findall(said)), default=0)
    coverage = max((int(number) for number in COVERED.findall(said)), default=0)
    return Found(inputs, time.monotonic() - began, coverage, failed=done.returncode != 0)


def shortened(fuzzer: Fuzzer, crash: Path) -> bytes:
    """The shortest part of an input that fails as well."""
    if fuzzer.is_python:
        return crash.read_bytes()
    environment = os.environ | {"ALIPES_FUZZ": "shrink", "ALIPES_FUZZ_INPUT": str(crash)}
    done = subprocess.run(fuzzer.command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    match = re.search(r"^hex: ([0-9a-f]*)$", done.stdout, re.MULTILINE)
    return bytes.fromhex(match[1]) if match else crash.read_bytes()

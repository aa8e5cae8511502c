"""The fuzzers of the crates and of Python, built so that libFuzzer sees what code an input reaches.

They are tests. The flags below are stable ones, so that the usual toolchain builds them; a sanitizer needs unstable
ones, which `RUSTC_BOOTSTRAP` lets it take, and the runtime library, which is part of every toolchain.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from search import Fuzzer

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-dev" / "bin" / "python"
COVERAGE = (
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions=yes",
    "-Coverflow-checks=yes",
)
RUST = re.compile(r'Fuzzer::new\(\s*"([\w-]+)"')
PYTHON_FUZZERS = ROOT / "tests" / "support" / "fuzzing" / "fuzzers.py"
PYTHON_FUZZER = re.compile(r'^    Fuzzer\("([\w-]+)"', re.MULTILINE)


def built(sanitizer: str | None, only: Sequence[str]) -> list[Fuzzer]:
    """All fuzzers; of the crates only those of which some are wanted, since each has to be built."""
    wanted = {program for name, program in in_crates().items() if not only or name in only}
    built = rust(wanted, sanitizer)
    ours = PYTHON_FUZZER.findall(PYTHON_FUZZERS.read_text(encoding="utf-8"))
    return built + (python(ours) if not only or set(ours) & set(only) else [])


def in_crates() -> dict[str, tuple[str, str]]:
    """The names of the fuzzers that stand in crates; for each its crate, and which of the crate's programs it is in."""
    folders = {"src": "--lib", "tests": "--test=all"}
    return {
        name: (crate, folders[folder])
        for file in sorted((ROOT / "crates").rglob("*.rs"))
        for crate, folder, *inside in [file.relative_to(ROOT / "crates").parts]
        if "fuzz" in "/".join(inside)
        for name in RUST.findall(file.read_text(encoding="utf-8"))
    }


def rust(wanted: Iterable[tuple[str, str]], sanitizer: str | None) -> list[Fuzzer]:
    """The fuzzers of these programs of crates, in the order of their names."""
    # A program without a fuzzer is not built: it lacks libFuzzer, which its flags ask for.
    by_kind: dict[str, list[str]] = {}
    for crate, kind in sorted(wanted):
        by_kind.setdefault(kind, []).append(crate)
    programs = [program for kind, crates in by_kind.items() for program in compiled(kind, crates, sanitizer)]
    found = [fuzzer for program in programs for fuzzer in tests(program)]
    return sorted(found, key=lambda fuzzer: fuzzer.name)


def compiled(kind: str, crates: Iterable[str], sanitizer: str | None) -> list[Path]:
    """The test programs of one kind, `--lib` or `--test=all`, of these crates."""
    environment = os.environ | {"RUSTFLAGS": " ".join([*COVERAGE, *sanitizing(sanitizer)])}
    environment |= {"CARGO_PROFILE_TEST_OPT_LEVEL": "2", "CARGO_TARGET_DIR": str(target(sanitizer))}
    environment |= {"RUSTC_BOOTSTRAP": "1"} if sanitizer else {}
    # With a target that is named, the flags are not those of build scripts and macros.
    command = ["cargo", "test", "--no-run", kind, "--locked", "--target", host(), "--message-format=json"]
    command += [f"--package=alipes-{crate}" for crate in crates]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [Path(it["executable"]) for it in messages if it.get("executable") and it["profile"]["test"]]


def sanitizing(sanitizer: str | None) -> list[str]:
    """The flags of a sanitizer."""
    return [f"-Zsanitizer={sanitizer}"] if sanitizer else []


def target(sanitizer: str | None) -> Path:
    """Where cargo builds: beside its other builds, which have other flags."""
    folder = subprocess.check_output(["tools/target-folder", sys.executable], cwd=ROOT, text=True).strip()
    return Path(folder) / (f"fuzz-{sanitizer}" if sanitizer else "fuzz")


def host() -> str:
    """The target that this machine is."""
    lines = subprocess.check_output(["rustc", "--version", "--verbose"], cwd=ROOT, text=True).splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def tests(program: Path) -> list[Fuzzer]:
    """The fuzzers of a test program: the tests of its modules `fuzz` that name themselves one."""
    listed = subprocess.check_output([program, "--list", "--format=terse"], text=True).splitlines()
    names = [line.removesuffix(": test") for line in listed if re.search(r"\bfuzz::", line)]
    found = []
    for test in names:
        command = [str(program), test, "--exact", "--nocapture", "--test-threads=1"]
        said = subprocess.check_output(command, env=os.environ | {"ALIPES_FUZZ": "name"}, text=True)
        if match := re.search(r"^fuzzer ([\w-]+)$", said, re.MULTILINE):
            found.append(Fuzzer(match[1], tuple(command)))
    return found


def python(names: Iterable[str]) -> list[Fuzzer]:
    """The fuzzers of Python, in an environment that has atheris; none, with the reason, where it cannot be had."""
    tool = [sys.executable, "tools/environment", ".venv-dev", "--group", "dev"]
    if subprocess.run([*tool, "--group", "fuzz"], cwd=ROOT, check=False).returncode != 0:
        print("fuzz: without Python's fuzzers, for which atheris cannot be installed", flush=True)
        return []
    return [Fuzzer(name, (str(PYTHON), "-m", "support.fuzzing.search", name), is_python=True) for name in names]

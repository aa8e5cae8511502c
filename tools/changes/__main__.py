"""Lints and tests what changed since the last commit on main: `python tools/changes [OPTION OF PYTEST]...`.

A changed crate brings the tests of the crates that depend on it, a changed room of the package its units and those of
the rooms that import it, both the end-to-end tests that their rows name. `make gate` is the whole.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from selected import crates_of, tests_of  # noqa: E402 - it needs the folder of the tests

PYTEST = [".venv-dev/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "4", "--dist", "loadgroup"]


def main() -> int:
    """The exit code: 0 where everything that ran has passed."""
    changed = _changed()
    crates, tests = crates_of(changed), tests_of(changed)
    print(f"» crates: {', '.join(crates) or 'none'}; tests: {' '.join(tests)}", flush=True)
    commands = [["tools/lint", "format"]]
    if crates:
        packages = [part for crate in crates for part in ("--package", crate)]
        commands.append(["cargo", "clippy", "--all-targets", "--locked", *packages, "--", "-D", "warnings"])
        dependents = " + ".join(f"rdeps(={crate})" for crate in crates)
        commands.append(["tools/test-rust", "gate", "-E", f"({dependents}) - package(=alipes-core)"])
    if any(path.endswith(".py") for path in changed):
        commands += [["tools/lint", "ruff"], ["tools/lint", "types"]]
    commands.append([*PYTEST, "-m", "not proof and not slow and not alone", *tests, *sys.argv[1:]])
    return next((code for command in commands if (code := _run(command))), 0)


def _changed() -> list[str]:
    found = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True, check=False)
    base = found.stdout.strip() or "HEAD"
    names = _lines("git", "diff", "--name-only", base) + _lines("git", "ls-files", "--others", "--exclude-standard")
    return sorted(set(names))


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def _run(command: Sequence[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""`make check` runs what a change concerns, and every test file is reached by some change."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def in_the_check(code: str) -> list[str]:
    """The lines that Python code prints that imports the modules of `tools/changes`."""
    folder = ROOT / "tools" / "changes"
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from selected import *\n{code}"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_every_test_file_is_reached_by_some_change() -> None:
    code = """
import selected
rows = [*ALWAYS, *(p for room in rooms() for p in units_of(room)), *(p for row in END_TO_END.values() for p in row)]
reached = files_of(selected._existing(rows))
print(len(reached))
for file in sorted(set(TESTS.rglob("test_*.py")) - reached):
    print(file.relative_to(TESTS))
"""
    reached, *others = in_the_check(code)
    assert int(reached) > 400
    assert others == []


def test_every_test_file_has_a_name_of_its_own() -> None:
    """Pytest imports them by their names alone."""
    names = Counter(file.name for file in TESTS.rglob("test_*.py"))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_no_row_names_what_is_not_there() -> None:
    code = """
import selected
for row in [*END_TO_END.values(), *UNITS.values()]:
    for pattern in row:
        if not selected._existing([pattern]):
            print(pattern)
folders = {path.name for path in (ROOT / "crates").iterdir()}
print(*(name for name in END_TO_END if name.startswith("crates/") and name[7:] not in folders), end="")
"""
    assert in_the_check(code) == []


@pytest.mark.parametrize(
    ("path", "some", "none"),
    [
        ("python/alipes/tune/search.py", ["tests/unit/tune", "tests/unit/advise", "tests/meta"], "tests/unit/config"),
        ("python/alipes/fitting.py", ["tests/unit/client", "tests/unit/worker"], "tests/unit/tune"),
        ("crates/stats/src/lib.rs", ["tests/e2e/levers"], "tests/unit"),
        ("tests/e2e/test_start.py", ["tests/e2e/test_start.py"], "tests/e2e/apps"),
        ("docs/index.md", ["tests/docs"], "tests/unit"),
    ],
)
def test_a_change_selects_its_own_tests_and_those_of_its_users(path: str, some: list[str], none: str) -> None:
    found = in_the_check(f"print(*tests_of([{path!r}]), sep='\\n')")
    assert set(some) <= set(found)
    assert not any(one == none or one.startswith(f"{none}/") for one in found)


def test_a_changed_crate_is_named_as_cargo_names_it() -> None:
    code = "print(*crates_of(['crates/http/src/lib.rs', 'crates/python/Cargo.toml', 'crates/gone/a.rs', 'docs/a']))"
    assert in_the_check(code) == ["alipes-core alipes-http"]

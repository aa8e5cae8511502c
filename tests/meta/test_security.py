"""Each claim of SECURITY.md names the tests that hold it, and they exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from alipes.config.flags import FLAGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
HELD_BY = "| held by |"


def claims() -> list[tuple[str, list[str]]]:
    """The rows of the tables that say what holds them: the claim, and the names of its tests."""
    rows = []
    for table in PAGE.split("\n\n"):
        if HELD_BY in table:
            cells = [re.split(r"(?<!\\)\|", line) for line in table.splitlines() if line.startswith("| ")]
            rows += [(claim.strip(), re.findall(r"`([^`]+)`", tests)) for _, claim, tests, *_ in cells[1:]]
    return rows


@cache
def names() -> frozenset[str]:
    """All functions in tests of Python, and in crates."""
    python = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    rust = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "crates").rglob("*.rs"))
    return frozenset(re.findall(r"\bdef (test_\w+)", python)) | frozenset(re.findall(r"\bfn (\w+)", rust))


def test_the_page_names_flags_and_files_that_exist() -> None:
    flags = {flag.name for flag in FLAGS}
    assert set(re.findall(r"`--([a-z0-9-]+)", PAGE)) - flags == set()
    files = re.findall(r"`((?:crates|python|docs|tests)/[^` ]+)`", PAGE) + re.findall(r"\]\(([^)#]+)", PAGE)
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_the_page_says_of_each_time_limit_that_is_off_that_it_is_to_be_set() -> None:
    """A load has no limit of time unless the operator sets one."""
    (load,) = [flag for flag in FLAGS if flag.name == "model-load-timeout-secs"]
    assert (load.default, "where `--model-load-timeout-secs` is set" in PAGE) == (0.0, True)


def test_the_page_makes_claims() -> None:
    assert len(claims()) > 40


@pytest.mark.parametrize(("claim", "tests"), claims(), ids=[claim[:60] for claim, _ in claims()])
def test_what_the_page_promises_is_held_by_tests(claim: str, tests: list[str]) -> None:
    assert tests, f"nothing holds: {claim}"
    assert set(tests) - names() == set()

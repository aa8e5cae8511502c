"""Each claim of SECURITY.md names the tests that hold it, and they exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from alipes.config.flags import FLAGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CLAIMS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    (ROOT / "tests" / "meta" / "security.toml").read_text(encoding="utf-8")
)


def claims() -> list[tuple[str, list[str]]]:
    """Each claim, and the names of its tests."""
    return [(claim, tests) for section in CLAIMS.values() for claim, tests in section.items()]


def listed() -> dict[str, list[str]]:
    """The claims of the page, by the section that they stand in."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        found[title] = [" ".join(one.split()) for one in re.findall(r"^\* (.*(?:\n  .*)*)", text, re.MULTILINE)]
    return {title: found[title] for title in CLAIMS}


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


def test_the_page_makes_the_claims_that_tests_hold() -> None:
    assert len(claims()) > 40
    assert listed() == {title: list(section) for title, section in CLAIMS.items()}


@pytest.mark.parametrize(("claim", "tests"), claims(), ids=[claim[:60] for claim, _ in claims()])
def test_what_the_page_promises_is_held_by_tests(claim: str, tests: list[str]) -> None:
    assert tests, f"nothing holds: {claim}"
    assert set(tests) - names() == set()

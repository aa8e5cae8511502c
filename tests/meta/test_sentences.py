"""Sentences of pages, of Python and of Rust name their subject: some words that hide it are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

REFUSED = {
    "say who it is: a client, a thread, anybody who ...": re.compile("whoever", re.IGNORECASE),
    "say what is the same": re.compile(r"(?:^|[.:|/!] |\n)The same, "),
    "say how often": re.compile(r"\bso manieth\b", re.IGNORECASE),
    "say what was done": re.compile(r"\bas it is asked\b", re.IGNORECASE),
}


def texts() -> Iterator[Path]:
    yield from (path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")
    yield from ROOT.glob("docs/**/*.md")
    yield from ROOT.glob("python/**/*.py")
    yield from ROOT.glob("crates/*/**/*.rs")


def test_no_sentence_hides_its_subject() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {mend}: {match.group().strip()!r}"
        for path in texts()
        for mend, pattern in REFUSED.items()
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_word_that_hides_the_subject_is_found() -> None:
    assert REFUSED["say what is the same"].search("absolute: The same, as a number.")
    assert REFUSED["say what is the same"].search("    /// The same, copied.")
    assert REFUSED["say who it is: a client, a thread, anybody who ..."].search("fn whoever_waits_is_woken() {")
    assert not REFUSED["say what is the same"].search("The same answer comes over gRPC.")

"""The glossary names files that exist, and words that it retired do not come back as identifiers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.syntax import syntax_tree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "glossary.md"

# Retired words with the definitions that still contain them. Counts only fall: lower them with each rename.
PYTHON: dict[str, int] = {
    "handover": 1,
}
RUST: dict[str, int] = {
    "asked": 0,
    "book": 0,
    "booked": 0,
    "books": 0,
    "bury": 0,
    "conductor": 0,
    "crew": 0,
    "crowd": 0,
    "desk": 0,
    "door": 0,
    "doors": 0,
    "fleet": 0,
    "flight": 0,
    "friend": 0,
    "given": 0,
    "handover": 0,
    "keeper": 0,
    "kept": 0,
    "lane": 0,
    "lanes": 0,
    "mourn": 0,
    "nap": 0,
    "neglect": 0,
    "nursery": 0,
    "parcel": 0,
    "passengers": 0,
    "patience": 0,
    "porter": 0,
    "postbox": 0,
    "posted": 0,
    "said": 0,
    "seat": 0,
    "seats": 0,
    "solo": 0,
    "taken": 0,
    "talk": 0,
    "told": 0,
}

# A longer name is a sentence: the fact that a test proves fits into less.
MAX_TEST_NAME = 70

# A word stays in the table of Rust when its count is 0.
RETIRED = frozenset(RUST)
# "In flight" is the field's own term.
FIELD_TERMS = re.compile(r"in_?flight", re.IGNORECASE)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
RUST_DEFINITION = re.compile(r"\b(?:struct|enum|trait|type|fn|mod|const|static|let(?: mut)?)\s+([A-Za-z_]\w*)")


def rows() -> list[list[str]]:
    """The rows of the page's table: word, meaning, file, words that it replaces."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def retired_words(names: Iterable[str]) -> Counter[str]:
    """How many names contain each retired word."""
    found: Counter[str] = Counter()
    for name in names:
        words = {word.lower() for word in WORD.findall(FIELD_TERMS.sub("", name))}
        found.update(words & RETIRED)
    return found


def python_definitions() -> Iterator[str]:
    """Names of modules, classes, functions, arguments and variables of the package and the tests' helpers."""
    for folder in (ROOT / "python" / "alipes", ROOT / "tests" / "support"):
        for file in sorted(folder.rglob("*.py")):
            yield file.stem
            for node in ast.walk(syntax_tree(file)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield node.name
                elif isinstance(node, ast.arg):
                    yield node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    yield node.attr


def python_tests() -> Iterator[str]:
    """Names of the functions that pytest runs, wherever their file is."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(syntax_tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name


def rust_definitions() -> Iterator[str]:
    """Names of files, types, functions, constants and variables of the crates."""
    for file in sorted((ROOT / "crates").rglob("*.rs")):
        if "target" not in file.parts:
            yield file.stem
            yield from RUST_DEFINITION.findall(file.read_text(encoding="utf-8"))


def test_every_word_names_files_that_exist() -> None:
    files = [
        f"/{file.relative_to(ROOT)}"
        for folder in ("crates", "python", "proto")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".rs", ".proto"} and "target" not in file.parts
    ]
    named = [(row[0], name) for row in rows() for name in re.findall(r"`([\w./]+\.(?:py|rs|proto))`", row[2])]
    assert {word for word, _ in named} == {row[0] for row in rows()}, "each word names its file"
    assert [pair for pair in named if not any(file.endswith(f"/{pair[1]}") for file in files)] == []


def test_a_word_stands_once_and_replaces_no_other_word() -> None:
    words = [word for row in rows() for word in row[0].split(", ")]
    assert len(words) == len(set(words))
    replaced = {word.strip() for row in rows() for word in row[3].split(",") if word.strip()}
    assert replaced.isdisjoint(words)


@pytest.mark.parametrize(
    ("found", "left"), [(python_definitions, PYTHON), (python_tests, {}), (rust_definitions, RUST)]
)
def test_retired_words_do_not_come_back(found: object, left: dict[str, int]) -> None:
    counts = retired_words(found())  # type: ignore[operator]
    assert {word: count for word, count in counts.items() if count > left.get(word, 0)} == {}


def test_names_of_tests_are_no_sentences() -> None:
    assert [name for name in python_tests() if len(name) > MAX_TEST_NAME] == []

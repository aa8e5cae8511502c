"""The pages for those who change the code name files and folders that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(f"docs/dev/{name}.md" for name in ("decisions", "dependencies", "index", "places")),
)
FOLDERS = ("bench", "crates", "docs", "examples", "proto", "python", "tests", "tools")
NAMED = re.compile(r"`([\w{},*/.-]+)`")


def files() -> set[str]:
    """Every file of the project's folders, and every folder, as paths below the root."""
    found: set[str] = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if "__pycache__" not in path.parts and "target" not in path.parts:
                found.add(str(path.relative_to(ROOT)))
    found |= {str(path.relative_to(ROOT)) for path in ROOT.iterdir()}
    # Pages leave out what every path of a kind has: `runtime/build.rs`, `python/alipes/lazily`.
    return found | {path.replace("/src/", "/") for path in found} | {path.removesuffix(".py") for path in found}


def spelled_out(name: str) -> list[str]:
    """`a/{b,c}.rs` is two names."""
    braces = re.search(r"\{([^}]*)\}", name)
    if braces is None:
        return [name]
    return [one for part in braces[1].split(",") for one in spelled_out(name.replace(braces[0], part, 1))]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    existing = files()
    named = {
        one.rstrip("/")
        for name in NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
        for one in spelled_out(name)
        if name.endswith((".rs", ".py", ".md")) or name.startswith(tuple(f"{folder}/" for folder in FOLDERS))
    }
    assert named
    endings = {path[start:] for path in existing for start in (0, *(found.end() for found in re.finditer("/", path)))}
    assert {name for name in named if "*" not in name} - endings == set()


def test_the_index_is_sorted() -> None:
    before = (ROOT / "docs" / "dev" / "index.md").read_text(encoding="utf-8")
    code = (
        f"import runpy; print(runpy.run_path({str(ROOT / 'tools' / 'sort-index')!r})['in_order']({before!r}), end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == before, "`make docs` sorts it"

"""Every dependency is there for a reason that somebody wrote down, and none without use."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted((ROOT / "crates").glob("*/Cargo.toml"))


def architecture() -> str:
    return (ROOT / "docs" / "dev" / "dependencies.md").read_text(encoding="utf-8")


def reasons() -> set[str]:
    names: set[str] = set()
    for line in architecture().splitlines():
        if line.startswith("| "):
            names.update(re.findall(r"[\w-]+", line.split("|")[1]))
    return names


def crate_dependencies(manifest: Path, *tables: str) -> set[str]:
    content = tomllib.loads(manifest.read_text(encoding="utf-8"))
    everywhere = [content, *content.get("target", {}).values()]
    used = {name for part in everywhere for table in tables for name in part.get(table, {})}
    return {name for name in used if not name.startswith("alipes-")}


@pytest.mark.parametrize("manifest", CRATES, ids=lambda path: path.parent.name)
def test_every_crate_that_is_used_has_a_reason(manifest: Path) -> None:
    used = crate_dependencies(manifest, "dependencies", "dev-dependencies", "build-dependencies")
    assert used - reasons() == set()


@pytest.mark.parametrize("manifest", CRATES, ids=lambda path: path.parent.name)
def test_every_declared_crate_is_used(manifest: Path) -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (manifest.parent / "src").rglob("*.rs"))
    declared = tomllib.loads(manifest.read_text(encoding="utf-8")).get("dependencies", {})
    unused = {name for name in declared if not re.search(rf"\b{name.replace('-', '_')}\b", sources)}
    assert unused == set()


def test_every_python_package_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}  # type: ignore[index]
    assert names - reasons() == set()


def test_no_reason_is_left_of_a_crate_that_went() -> None:
    used = set().union(
        *(crate_dependencies(path, "dependencies", "dev-dependencies", "build-dependencies") for path in CRATES)
    )
    rust = architecture().split("| Python |", 1)[0]
    listed = {
        name
        for line in rust.splitlines()[4:]
        if line.startswith("| ") and not line.startswith("| Rust")
        for name in re.sub(r"\(.*?\)", "", line.split("|")[1]).replace(" ", "").split(",")
    }
    assert listed - used == set()

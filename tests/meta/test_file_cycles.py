"""Files of a crate that import each other in a circle: their number may only fall."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

# Crate -> files of its largest circle. A crate that is not named has none.
LARGEST = {
    "client": 3,
    "clock": 2,
    "driver-ensemble": 10,
    "driver-native": 2,
    "driver-streaming": 3,
    "driver-worker": 9,
    "engine": 4,
    "grpc": 8,
    "http": 2,
    "link": 3,
    "net": 6,
    "protocol": 7,
    "python": 3,
    "request": 4,
    "runtime": 18,
    "scheduler": 3,
    "service": 6,
    "testkit": 2,
    "trace-export": 2,
}

Graph = dict[Path, set[Path]]


class Modules:
    """The modules of a crate, by their path, and the file of each."""

    def __init__(self, source: Path) -> None:
        self.files: dict[tuple[str, ...], Path] = {}
        for file in sorted(source.rglob("*.rs")):
            names = file.relative_to(source).with_suffix("").parts
            module = names[:-1] if names[-1] in ("mod", "lib") else names
            self.files[module] = file

    def edges(self) -> Graph:
        """Each file with those that it names."""
        return {file: set(self._named(module, file)) - {file} for module, file in self.files.items()}

    def _named(self, module: tuple[str, ...], file: Path) -> Iterator[Path]:
        for path in paths(without_tests(file.read_text(encoding="utf-8"))):
            first, *rest = path
            if first == "crate":
                absolute = tuple(rest)
            elif first in ("super", "self"):
                ups = sum(1 for name in path if name == "super")
                absolute = module[: len(module) - ups] + tuple(name for name in rest if name not in ("super", "self"))
            elif (*module, first) in self.files:
                absolute = (*module, *path)
            else:
                continue
            while absolute not in self.files:
                absolute = absolute[:-1]
            yield self.files[absolute]


def without_tests(code: str) -> str:
    """Code without comments, and without the tests at its end, which may name what they like."""
    return re.sub(r"//.*", "", re.split(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{", code, maxsplit=1, flags=re.M)[0])


def paths(code: str) -> Iterator[list[str]]:
    """Every path in code, those of a `use` with braces each by itself."""
    for statement in re.findall(r"\buse ([^;]+);", code):
        yield from spread([], re.sub(r"\s", "", re.sub(r"\s+as\s+\w+", "", statement)))
    for path in re.findall(r"\b(?:\w+::)+\w+", re.sub(r"\buse [^;]+;", "", code)):
        yield path.split("::")


def spread(prefix: list[str], tree: str) -> Iterator[list[str]]:
    """The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    head, brace, body = tree.partition("{")
    names = [*prefix, *(name for name in head.split("::") if name)]
    if not brace:
        yield names
        return
    depth, part = 0, ""
    for letter in body.rsplit("}", 1)[0] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part:
                yield from spread(names, part)
            part = ""
        else:
            part += letter


def circles(graph: Graph) -> list[set[Path]]:
    """The sets of files of which each reaches every other one."""
    reached = {file: reach(graph, file) for file in graph}
    found: list[set[Path]] = []
    for file in graph:
        circle = {other for other in reached[file] if file in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def reach(graph: Graph, start: Path) -> set[Path]:
    seen: set[Path] = set()
    ahead = list(graph[start])
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            ahead.extend(graph[file])
    return seen


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_circles_of_files_only_shrink(crate: str) -> None:
    found = circles(Modules(CRATES / crate / "src").edges())
    largest = max(found, key=len, default=set())
    assert len(largest) <= LARGEST.get(crate, 0), sorted(str(file.relative_to(CRATES)) for file in largest)
    assert len(largest) == LARGEST.get(crate, 0), (
        f"the largest circle of {crate} has {len(largest)} files: write it here"
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("a::b", ["a::b"]),
        ("a::{b,c::d}", ["a::b", "a::c::d"]),
        ("a::{b::{c,d},self}", ["a::b::c", "a::b::d", "a::self"]),
    ],
)
def test_a_tree_of_imports_is_spread_into_its_paths(tree: str, expected: list[str]) -> None:
    assert ["::".join(path) for path in spread([], tree)] == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("use a::tasks::Basis;", ["a::tasks::Basis"]),
        ("use a::Asking as _;", ["a::Asking"]),
        ("use a::{phase,\n    b::last as final_one};", ["a::phase", "a::b::last"]),
    ],
)
def test_another_name_of_an_import_is_left_out(code: str, expected: list[str]) -> None:
    assert ["::".join(path) for path in paths(code)] == expected


def test_two_files_that_name_each_other_are_a_circle(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod one;\nmod two;\nuse one::One;\n")
    (tmp_path / "one.rs").write_text("use crate::two::Two;\n")
    (tmp_path / "two.rs").write_text("// crate::lib\nfn f(_: super::one::One) {}\n")
    assert circles(Modules(tmp_path).edges()) == [{tmp_path / "one.rs", tmp_path / "two.rs"}]

"""A type name has one meaning in a crate: no two files of it define the same one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

# At the start of a line: a type in a test module is indented, and means something in that test only.
DEFINITION = re.compile(r"^(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait) (\w+)", re.MULTILINE)


def type_names(source: Path) -> Counter[str]:
    """How often the files of a crate define each name."""
    return Counter(
        name for file in source.rglob("*.rs") for name in DEFINITION.findall(file.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_a_crate_defines_a_type_name_once(crate: str) -> None:
    names = type_names(CRATES / crate / "src")
    assert [name for name, count in names.items() if count > 1] == []


def test_public_and_private_types_are_found_and_those_of_tests_are_not(tmp_path: Path) -> None:
    (tmp_path / "one.rs").write_text("pub struct Slot;\npub(crate) enum Place {\n}\nmod tests {\n    struct Slot;\n}\n")
    (tmp_path / "two.rs").write_text("struct Slot;\ntrait Work {}\nimpl Slot {}\n")
    assert type_names(tmp_path) == {"Slot": 2, "Place": 1, "Work": 1}

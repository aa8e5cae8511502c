"""Comments of Rust, which its formatter leaves alone, are as narrow as its code."""

from __future__ import annotations

from pathlib import Path

CRATES = Path(__file__).parents[2] / "crates"
MOST_COLUMNS = 120


def test_comments_keep_to_the_width() -> None:
    wide = [
        f"{file.relative_to(CRATES)}:{number}"
        for file in sorted(CRATES.glob("*/**/*.rs"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip().startswith("//") and len(line) > MOST_COLUMNS
    ]
    assert wide == []

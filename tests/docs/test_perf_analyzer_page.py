"""The reference page of perf_analyzer's flags is what the table of options makes it."""

from __future__ import annotations

from pathlib import Path

from alipes.compat.perf_analyzer.reference import NAME, page

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_flags_is_fresh() -> None:
    assert (REFERENCE / NAME).read_text(encoding="utf-8") == page(), "run `make docs`"


def test_the_page_of_flags_tells_what_is_refused() -> None:
    refused = [line for line in page().splitlines() if "| refused |" in line]
    assert any("`--enable-mpi`" in line for line in refused)
    assert not any("--concurrency-range <" in line for line in refused)

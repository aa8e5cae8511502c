"""What the pages "From ..." show are the very programs that the bench measures and that tests compare."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.blocks import blocks

ROOT = Path(__file__).parents[2]
# The bench is a tool of the project's folder, and no package that is installed.
sys.path.insert(0, str(ROOT))

from bench.rows.table import rows  # noqa: E402

HOW_TO = ROOT / "docs" / "how-to"
PEERS = ("bentoml", "fastapi", "litserve", "mlserver", "torchserve")
FILE = re.compile(r"^[\w-]+(/[\w.-]+)*\.(py|json|properties|pbtxt)$")


def programs(page: Path) -> dict[str, str]:
    """Files that a page shows of a peer or of ours, with their content; paths are those of the page's reader."""
    found = blocks(page.read_text(encoding="utf-8"))
    named = {block.argument.partition(" needs ")[0]: block.text for block in found}
    return {file: text for file, text in named.items() if FILE.match(file)}


def source(peer: str, file: str) -> Path:
    """Where a file of a page is in the project."""
    if file.endswith("/config.pbtxt"):
        return ROOT / "bench" / "apps" / f"{Path(file).parent.name}.pbtxt"
    inside = file.removeprefix(f"{peer}/")
    return ROOT / "bench" / ("apps" if inside == file else f"peers/{peer}") / inside


@pytest.mark.parametrize("peer", PEERS)
def test_a_page_shows_the_programs_that_are_measured(peer: str) -> None:
    shown = programs(HOW_TO / f"from-{peer}.md")
    assert {file for file in shown if file.startswith(f"{peer}/")}, "the page shows no program of the peer"
    assert {file for file in shown if not file.startswith(f"{peer}/")}, "the page shows no program of ours"
    for file, text in shown.items():
        assert source(peer, file).read_text(encoding="utf-8") == text, file


@pytest.mark.parametrize("peer", PEERS)
def test_a_page_names_rows_of_the_benchmarks(peer: str) -> None:
    words = " ".join((HOW_TO / f"from-{peer}.md").read_text(encoding="utf-8").split())
    titles = {row.facts.name: row.facts.title for row in rows(soak_requests=1000)}
    (named,) = re.findall(r"make bench ROWS=([\w,]+)`", words)
    for name in named.split(","):
        assert any(
            title in words for title in (f'"{titles[name][:end]}"' for end in range(8, len(titles[name]) + 1))
        ), name

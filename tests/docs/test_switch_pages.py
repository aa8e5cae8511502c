"""What the pages "From ..." show are the very programs that the bench measures and that tests compare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.blocks import blocks

ROOT = Path(__file__).parents[2]
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

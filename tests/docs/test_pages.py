"""Every page works as it is printed: see `reader` for what a fence means."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.blocks import blocks, pages
from support.reader import Reader

ROOT = Path(__file__).parents[2]
# Pages whose blocks need more than the base install, with the extra that brings it.
NEEDS = {
    "export-models": "torch",
    "serve-pytorch": "torch",
    "streaming-export": "torch",
    "stream-a-detector": "torch",
    "serve-openvino": "openvino",
    "serve-tensorflow": "keras",
    "serve-mlflow": "mlflow",
    "serve-sklearn": "sklearn",
    "serve-xgboost": "trees",
    "serve-lightgbm": "trees",
    "serve-catboost": "trees",
    "from-mlserver": "trees",
    "from-torchserve": "torch",
}
PAGES = [
    pytest.param(
        page, marks=pytest.mark.extra(NEEDS[page.stem]) if page.stem in NEEDS else (), id=str(page.relative_to(ROOT))
    )
    for page in pages(ROOT)
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow("every block of a page is run")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_works_as_printed(page: Path, tmp_path: Path) -> None:
    if page.is_relative_to(ROOT / "examples"):
        # Its reader sits in the example's folder; in a copy, for what they make there is not the checkout's.
        shutil.copytree(page.parent, tmp_path, dirs_exist_ok=True)
    elif "examples/" in "".join(block.text for block in blocks(page.read_text(encoding="utf-8"))):
        # Its reader sits in a checkout, whose examples they use.
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".*"))
    with Reader(tmp_path) as reader:
        for block in blocks(page.read_text(encoding="utf-8")):
            try:
                reader.follow(block)
            except AssertionError as error:
                raise AssertionError(f"{_name(page)}:{block.line}: {error}") from error


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    targets = [urlsplit(target) for target in LINK.findall(prose)]
    local = [target for target in targets if not target.scheme]
    missing = [target.path for target in local if target.path and not (page.parent / target.path).exists()]
    assert missing == []

"""The page about Slurm works as it is printed, on a real Slurm of one node."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.blocks import blocks
from support.reader import Reader
from support.slurm import skip_without_slurm, slurm

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "slurm.md"
BY = re.compile(r"(?:^| )by docs/test_slurm_page\.py$")


@pytest.mark.proof
def test_every_block_about_slurm_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_slurm()
    typed = [block for block in blocks(PAGE.read_text(encoding="utf-8")) if BY.search(block.argument)]
    assert {block.language for block in typed} == {"bash", "console", "python"}
    with slurm(tmp_path) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        folder = tmp_path / "reader"
        folder.mkdir()
        with Reader(folder) as reader:
            for block in typed:
                reader.follow(replace(block, argument=BY.sub("", block.argument)))

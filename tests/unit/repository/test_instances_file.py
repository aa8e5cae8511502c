"""The file of a version says how many requests an instance works on side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.repository.instances_file import MOST_SIDE_BY_SIDE, read_side_by_side, write_side_by_side


def test_a_number_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_side_by_side(tmp_path) == 0
    write_side_by_side(tmp_path, 0)
    assert not [*tmp_path.iterdir()]
    write_side_by_side(tmp_path, 32)
    assert read_side_by_side(tmp_path) == 32
    write_side_by_side(tmp_path, MOST_SIDE_BY_SIDE + 1)
    assert read_side_by_side(tmp_path) == MOST_SIDE_BY_SIDE


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"side_by_side": "8"}', '{"side_by_side": -1}'])
def test_what_is_no_number_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "instances.json").write_text(text)
    assert read_side_by_side(tmp_path) == 0

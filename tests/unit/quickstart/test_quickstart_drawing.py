import numpy as np
import pytest
from alipes.quickstart import drawing


@pytest.mark.parametrize("shades", [drawing.BLOCKS, drawing.ASCII])
def test_a_scan_becomes_eight_lines_of_two_characters_a_pixel(shades: str) -> None:
    lines = drawing.draw(np.arange(64, dtype=np.uint8).reshape(8, 8) // 4, shades)
    assert len(lines) == 8
    assert {len(line) for line in lines} == {drawing.CELL_WIDTH}


def test_only_paper_is_blank_and_full_ink_is_darkest() -> None:
    pixels = np.zeros((8, 8), np.uint8)
    pixels[0, :3] = 0, 1, 16
    first = drawing.draw(pixels)[0]
    assert first[:6] == "  ░░██"
    assert set(first[6:]) == {" "}


def test_shades_darken_with_the_ink() -> None:
    shown = [drawing.draw(np.full((8, 8), ink, np.uint8))[0][0] for ink in range(17)]
    assert shown == sorted(shown, key=drawing.BLOCKS.index)
    assert set(shown) == set(drawing.BLOCKS)


@pytest.mark.parametrize(("columns", "count"), [(80, 4), (79, 4), (73, 4), (72, 3), (16, 1), (5, 1)])
def test_as_many_scans_stand_side_by_side_as_fit(columns: int, count: int) -> None:
    assert drawing.fitting(columns) == count
    blocks = [drawing.draw(np.full((8, 8), 16, np.uint8))] * count
    width = max(len(line) for line in drawing.side_by_side(blocks))
    assert width <= max(columns, drawing.CELL_WIDTH)

"""The example measures all cells of its figures, cleans the strain better by larger means, and draws them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "fleet"

pytestmark = pytest.mark.timeout(600)


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--output", "out", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow("starts four servers, one after the other")
def test_three_figures_are_measured(tmp_path: Path) -> None:
    text = run(tmp_path, "--no-pictures", "--server-price", "3600", "--client-price", "0")
    left = [float(number) for number in re.findall(r"(-[\d.]+) dB left", text)]
    assert len(left) == 2
    assert left[1] < left[0] - 6, "a larger mean is cleaner"
    assert len(re.findall(r"[\d.]+ ms from a frame to its answers", text)) == 2
    cells = re.findall(r"^(\d) servers, 1 clients of each: +([\d.]+) s of data a second$", text, re.MULTILINE)
    assert [int(n) for n, _ in cells] == [1, 2, 1, 2]
    costs = {n: int(n) * 3600 / max(float(rate) for one, rate in cells if one == n) for n in ("1", "2")}
    cheapest = re.search(r"^cheapest: (\d) servers, 1 .* ([\d.]+) for an hour of data$", text, re.MULTILINE)
    assert cheapest is not None
    assert float(cheapest[2]) == pytest.approx(costs[cheapest[1]], rel=0.01)
    assert costs[cheapest[1]] == pytest.approx(min(costs.values()), rel=0.01)


@pytest.mark.extra("plots")
@pytest.mark.slow("starts four servers, one after the other")
def test_three_figures_are_drawn(tmp_path: Path) -> None:
    run(tmp_path)
    for name in ("offline", "online", "aggregation"):
        picture = (tmp_path / "out" / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(picture) > 15_000

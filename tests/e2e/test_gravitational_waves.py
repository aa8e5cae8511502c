"""The example finds what it has put into the noise, streams what single windows give, and draws it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "gravitational-waves"
STRIDE, WINDOW = 128, 2048

pytestmark = pytest.mark.timeout(600)


def run(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, str(FOLDER / "run.py"), "--output", "out", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_every_inspiral_is_heard_and_nothing_else(tmp_path: Path) -> None:
    lines = run(tmp_path, "--seconds", "40", "--no-picture")
    assert len(lines) >= 4
    assert all(line.startswith("inspiral at") and ": heard at" in line for line in lines), lines

    with np.load(tmp_path / "out" / "snr.npz") as saved:
        strain, snr = saved["strain"], saved["snr"]
    session = onnxruntime.InferenceSession(tmp_path / "out" / "models" / "matched-filters" / "1" / "model.onnx")
    full = WINDOW // STRIDE - 1
    for stride in (full, full + 1, 200, len(snr) - 1):
        window = np.ascontiguousarray(strain[None, :, (stride + 1) * STRIDE - WINDOW : (stride + 1) * STRIDE])
        # Another session may share its work among threads in another way, and round differently.
        np.testing.assert_allclose(snr[stride], session.run(None, {"strain": window})[0][0, 0], rtol=1e-5)

    with (tmp_path / "out" / "server-stats.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} <= {"snapshotter", "matched-filters"}


@pytest.mark.extra("plots")
def test_the_picture_is_drawn(tmp_path: Path) -> None:
    assert run(tmp_path, "--seconds", "12")[-1] == "out/search.png"
    picture = (tmp_path / "out" / "search.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) > 20_000

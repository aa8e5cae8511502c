"""`examples/digits/train.py` writes what the package ships."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from alipes.quickstart import digits

pytestmark = pytest.mark.extra("examples")

TRAIN = Path(__file__).parents[2] / "examples" / "digits" / "train.py"


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_training_writes_the_shipped_folder_again(tmp_path: Path) -> None:
    # Threads of a linear algebra library wait for each other by turning, which takes minutes where cores are shared.
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(TRAIN), "--output", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **alone},
    )
    assert done.returncode == 0, done.stderr
    written = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    shipped = {path.relative_to(digits.FOLDER) for path in digits.FOLDER.rglob("*") if path.is_file()}
    assert written == shipped - {Path("DATA.md")}
    for text in ("models/digits/config.pbtxt", "models/digits/labels.txt", "request.json"):
        assert (tmp_path / "out" / text).read_text() == (digits.FOLDER / text).read_text()
    with np.load(tmp_path / "out" / "held_out.npz") as arrays:
        scans, labels = arrays["scans"], arrays["labels"]
    assert np.array_equal(scans, digits.held_out().scans)
    assert np.array_equal(labels, digits.held_out().labels)
    # Weights may differ in their last bits from one linear algebra library to the next; how well it reads may not.
    session = onnxruntime.InferenceSession(tmp_path / "out" / "models" / "digits" / "1" / "model.onnx")
    (probabilities,) = session.run(None, {digits.INPUT: scans.astype(np.float32)})
    assert (probabilities.argmax(axis=1) == labels).mean() > 0.96

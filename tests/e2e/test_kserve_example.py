"""The example's servers answer, its good version is promoted, its broken one is taken back, and nothing fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "kserve"

pytestmark = [pytest.mark.extra("explain"), pytest.mark.timeout(600)]


@pytest.mark.slow("trains a network, starts four servers, and rolls two versions out")
def test_transformer_predictor_explainer_and_canary_work_together(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "--output", "out", "--step", "1.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    text = done.stdout
    assert done.returncode == 0, text + done.stderr
    shares = [int(share) for share in re.findall(r"tells (\d+) % of held-out", text)]
    assert shares[0] + 5 < shares[1] > 80 > shares[2]
    classes = re.findall(r"^ *(\d+) % good: (.*)$", text, re.MULTILINE)
    assert len(classes) == 3
    assert "it rests on " in text
    assert "version 2 is promoted" in text
    assert "version 3 is taken back" in text
    assert re.search(r"meanwhile \d{3,} requests were answered, and 0 failed", text)
    assert "answers 503: predictor 'bert' at grpc://" in text
    assert "with it again: 200" in text
    from_zero = re.search(r"first request takes ([\d.]+) s, the next ones (\d+) ms; 16 requests over 2 starts", text)
    assert from_zero is not None
    assert re.search(r"Knative would order up to [1-8] such servers", text)
    assert "no picture" in text or (tmp_path / "out" / "kserve.png").stat().st_size > 30_000

"""A hundred thousand small files are planned in seconds, with little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FILES = 100_000
CODE = """
import resource, sys, time
import numpy as np
from alipes.batch.folder import RunFolder
from alipes.batch.formats.base import Wanted
from alipes.batch.inputs import find_files
from alipes.batch.planning import Extent, Work, add_plan, make_plan
from alipes.batch.rows import ModelRows
from alipes.client.signature import Signature, TensorSpec

spec = TensorSpec("X", "FP32", (-1, 2))
rows = ModelRows(Signature("m", {"X": spec}, {}, frozenset({"X"})), 8, Wanted({"X": 2}, frozenset({"X"})))
folder = RunFolder(sys.argv[2])
folder.prepare()
begun = time.process_time()
work, found = Work("m", "", "npz"), find_files(sys.argv[1])
plan = add_plan(folder, work, found, make_plan(work, found, rows, Extent(2, 4, 8 << 20)))
read = folder.plan()
took = time.process_time() - begun
assert read == plan
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(plan.units), plan.piece_count)
"""


@pytest.mark.proof
def test_a_plan_of_many_files_is_quick_and_small(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    np.save(data / "000000.npy", np.ones((1, 2), np.float32))
    content = (data / "000000.npy").read_bytes()
    for number in range(1, FILES):
        (data / f"{number:06}.npy").write_bytes(content)
    words = [sys.executable, "-c", CODE, str(data / "*.npy"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds, memory_mb, units, pieces = map(float, done.stdout.split())
    assert units == FILES
    assert pieces == -(-FILES // 256)
    assert seconds < 5
    assert memory_mb < 200

"""No random graph is batched whose answers to rows together are others than to each alone."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes._core import OnnxProbe
from alipes.backends.onnxruntime.library import find_library
from alipes.backends.onnxruntime.model_file import run_arrays
from alipes.row_proof import prove_rows
from alipes.signature import Signature
from support.random_graphs import WIDTH, random_graph

GRAPHS, PARTS, IN_PROOF = 200, 8, 100_000

LARGEST = 1e-3
"""Difference in units of the largest answer that is no rounding."""


def differs(run: Any, number: int) -> bool:
    """Whether rows that the proof has not seen are answered otherwise together than alone."""
    random = np.random.default_rng([number, 1])
    for scale in (0.3, 3.0):
        rows = (random.normal(size=(4, WIDTH)) * scale).astype("f4")
        together = run({"x": rows})["y"]
        alone = np.concatenate([run({"x": rows[at : at + 1]})["y"] for at in range(len(rows))])
        largest = np.abs(alone[np.isfinite(alone)]).max(initial=0)
        if not np.allclose(together, alone, rtol=0, atol=largest * LARGEST, equal_nan=True):
            return True
    return False


def tried(numbers: range, folder: Path) -> Counter[str]:
    """What was found out, and whether it was right, of the graphs of these numbers."""
    found: Counter[str] = Counter()
    file = folder / "model.onnx"
    for number in numbers:
        graph = random_graph(number)
        file.write_bytes(graph.file)
        probe = OnnxProbe(str(find_library()), str(file))
        signature = Signature.from_json(probe.signature())
        run = partial(run_arrays, probe, signature)
        proof = prove_rows(run, signature)
        found[proof.outcome] += 1
        if proof.holds:
            assert not differs(run, number), f"graph {number} was proved: {graph.steps}"
        elif not graph.mixes:
            found[f"rows of their own, {proof.outcome}"] += 1
    return found


def check(found: Counter[str], graphs: int) -> None:
    assert found["proved"] + found["refuted"] + found["untried"] == graphs
    # A proof that refuses everything would be right, and of no use.
    assert found["rows of their own, refuted"] + found["rows of their own, untried"] <= graphs // 100
    assert found["proved"] >= graphs * 0.45
    assert found["refuted"] >= graphs * 0.3


def test_no_random_graph_is_batched_that_mixes_rows(tmp_path: Path) -> None:
    check(tried(range(GRAPHS), tmp_path), GRAPHS)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_none_of_a_hundred_thousand_is(part: int, tmp_path: Path) -> None:
    numbers = range(GRAPHS + part, GRAPHS + IN_PROOF, PARTS)
    check(tried(numbers, tmp_path), len(numbers))

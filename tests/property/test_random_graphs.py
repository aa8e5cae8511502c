"""No random graph is batched whose answers to rows together are others than to each alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from alipes._core import OnnxProbe
from alipes.backends.onnxruntime.library import find_library
from alipes.backends.onnxruntime.model_file import run_arrays
from alipes.row_proof import prove_rows
from alipes.signature import Signature
from support.random_graphs import WIDTH, random_graph
from support.random_rows import Found, differs

GRAPHS, PARTS, IN_PROOF = 200, 8, 100_000


def tried(numbers: range, folder: Path) -> Found:
    """What was found out, and whether it was right, of the graphs of these numbers."""
    found = Found()
    file = folder / "model.onnx"
    for number in numbers:
        graph = random_graph(number)
        file.write_bytes(graph.file)
        probe = OnnxProbe(str(find_library()), str(file))
        signature = Signature.from_json(probe.signature())
        run = partial(run_arrays, probe, signature)
        proof = prove_rows(run, signature)
        if proof.holds:
            assert not differs(run, number, WIDTH), f"graph {number} was proved: {graph.steps}"
        found.count(proof, mixes=graph.mixes)
    return found


def test_no_random_graph_is_batched_that_mixes_rows(tmp_path: Path) -> None:
    tried(range(GRAPHS), tmp_path).check(GRAPHS)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_none_of_a_hundred_thousand_is(part: int, tmp_path: Path) -> None:
    numbers = range(GRAPHS + part, GRAPHS + IN_PROOF, PARTS)
    tried(numbers, tmp_path).check(len(numbers))

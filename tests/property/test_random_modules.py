"""No random TorchScript module is batched whose answers to rows together are others than to each alone."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.row_proof import prove_rows
from alipes.signature import Port, Signature
from support.random_modules import WIDTH, random_module
from support.random_rows import Found, differs

pytestmark = pytest.mark.extra("torch")

MODULES, PARTS, IN_PROOF = 100, 4, 20_000

SIGNATURE = Signature((Port("x", "FP32", (-1, WIDTH)),), (Port("y", "FP32", (-1, WIDTH)),))


def tried(numbers: range) -> Found:
    """What was found out, and whether it was right, of the modules of these numbers."""
    found = Found()
    for number in numbers:
        module = random_module(number)

        def run(arrays: dict[str, Any], module: Any = module) -> dict[str, Any]:
            return {"y": module.run(arrays["x"])}

        proof = prove_rows(run, SIGNATURE)
        if proof.holds:
            assert not differs(run, number, WIDTH), f"module {number} was proved: {module.steps}"
        found.count(proof, mixes=module.mixes)
    return found


def test_no_random_module_is_batched_that_mixes_rows() -> None:
    tried(range(MODULES)).check(MODULES)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_none_of_twenty_thousand_is(part: int) -> None:
    numbers = range(MODULES + part, MODULES + IN_PROOF, PARTS)
    tried(numbers).check(len(numbers))

"""Sweeps are recorded on real servers; those of the searches' tests come from the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.sweeps.models import SWEPT
from support.sweeps.record import record
from support.sweeps.sweep import Sweep

# The others differ in their models alone, and each is recorded in the proof.
IN_THE_GATE = "steps"


@pytest.mark.slow("starts a server and loads a model several times")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.proof] if name != IN_THE_GATE else []) for name in sorted(SWEPT)]
)
def test_every_possible_point_is_measured_in_every_round(name: str, tmp_path: Path) -> None:
    whole = SWEPT[name]
    few = {knob: values[:2] for knob, values in whole.values.items()} | {"callers": [2], "instances": [1]}
    said: list[str] = []
    sweep = record(name, replace(whole, values=few), 2, 0.3, said.append)
    assert len(said) == 2
    impossible = [
        point
        for point in sweep.space.points()
        if point.number(name, "max_batch_size") == 1 and point.number(name, "queue_delay_us")
    ]
    assert set(sweep.rounds) == set(sweep.space.points()) - set(impossible)
    assert all(len(rounds) == 2 for rounds in sweep.rounds.values())
    assert all(one["rate"] > 0 and one["p50_ms"] <= one["p99_ms"] for rounds in sweep.rounds.values() for one in rounds)
    read = Sweep.read(sweep.write(tmp_path))
    assert read.space == sweep.space
    assert set(read.rounds) == set(sweep.rounds)

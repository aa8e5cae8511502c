"""Knative's own scaler beside ours, on services and loads by chance: each decision is the same."""

from __future__ import annotations

import pytest
from support.knative import decided_by_knative, decided_here, random_scenario, recorded, scenarios
from support.kube import Missing


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_decisions_of_random_services_are_those_of_knative(seed: int) -> None:
    known = [random_scenario(number) for number in range(seed, seed + 100)]
    try:
        wanted = decided_by_knative(known)
    except Missing as reason:
        pytest.skip(str(reason))
    for scenario, decisions in zip(known, wanted, strict=True):
        assert decided_here(scenario) == decisions, scenario


@pytest.mark.proof
def test_recorded_decisions_are_still_those_of_knative() -> None:
    known = scenarios()
    try:
        wanted = decided_by_knative(known)
    except Missing as reason:
        pytest.skip(str(reason))
    assert recorded() == dict(zip((scenario.name for scenario in known), wanted, strict=True))

"""`alipes serve` answers recorded requests as Triton did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from golden.later import LATER
from golden.replay import Differences, replay
from golden.scenarios import groups


def _scenarios() -> list[object]:
    return [
        pytest.param(
            group.name,
            scenario.id,
            id=scenario.id,
            # One worker plays a group where workers are given whole groups; elsewhere each plays it for itself.
            marks=[
                pytest.mark.xdist_group(group.name),
                pytest.mark.timeout(180),
                pytest.mark.slow("the first of a group plays the whole group"),
            ],
        )
        for group in groups().values()
        for scenario in group.scenarios
    ]


@pytest.fixture(scope="session")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Differences]:
    """The differences of a group, which is played once, when the first of its scenarios asks."""
    outcomes: dict[str, Differences | Exception] = {}

    def outcome_of(group: str) -> Differences:
        if group not in outcomes:
            try:
                outcomes[group] = replay(groups()[group], tmp_path_factory.mktemp(group))
            except Exception as error:
                outcomes[group] = error
        outcome = outcomes[group]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return outcome_of


@pytest.mark.parametrize(("group", "scenario"), _scenarios())
def test_recorded_exchange_has_no_difference(group: str, scenario: str, replayed: Callable[[str], Differences]) -> None:
    differences = replayed(group)[scenario]
    if scenario in LATER:
        assert differences, "it passes now: take it out of the list of what is left for later"
        pytest.skip(LATER[scenario])
    assert not differences, "\n".join(differences)


def test_scenarios_left_for_later_exist() -> None:
    recorded = {scenario.id for group in groups().values() for scenario in group.scenarios}
    assert LATER.keys() <= recorded

"""The retry budget: at most its reserve and its share of the calls, whatever happens."""

from __future__ import annotations

import pytest
from alipes.errors import ConfigError
from alipes.predictor import RetryBudget
from hypothesis import given
from hypothesis import strategies as st


@given(
    share=st.floats(0, 1),
    reserve=st.integers(0, 20),
    calls=st.lists(st.integers(0, 5), max_size=100),
)
def test_a_budget_stays_within_its_share_and_reserve(share: float, reserve: int, calls: list[int]) -> None:
    budget = RetryBudget(share, reserve)
    taken = 0
    for number, attempts in enumerate(calls, start=1):
        budget.count_call()
        taken += sum(budget.take() for _ in range(attempts))
        assert taken <= reserve + share * number + 1e-6


def test_ten_calls_bring_back_one_retry_of_a_budget_of_a_tenth() -> None:
    budget = RetryBudget(0.1, reserve=1)
    assert [budget.take(), budget.take()] == [True, False]
    for _ in range(9):
        budget.count_call()
    assert not budget.take()
    budget.count_call()
    assert [budget.take(), budget.take()] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"share": 1.5}, "share=1.5"), ({"share": True}, "share=True"), ({"reserve": -1}, "reserve=-1")],
)
def test_a_budget_refuses_what_is_no_budget(arguments: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        RetryBudget(**arguments)  # type: ignore[arg-type]

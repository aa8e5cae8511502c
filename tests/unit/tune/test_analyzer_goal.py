"""The goal of several models that get requests at the same time, from Model Analyzer's options of each."""

from __future__ import annotations

import pytest
from alipes import ConfigError
from alipes.tune import Goal, Limit, Objective
from alipes.tune.analyzer.plan import ModelPlan
from alipes.tune.analyzer.profile import goal_of

FAST = Goal((Objective("p99_ms", 10),), (Limit.parse("p99_ms<=20"), Limit.parse("memory_mb<=500")))
BUSY = Goal((Objective("rate", 3), Objective("memory_mb", 1)), (Limit.parse("memory_mb<=500"),))


def plan(name: str, goal: Goal, weight: float = 1.0) -> ModelPlan:
    return ModelPlan(name, {}, goal, weight)


def test_a_model_alone_keeps_its_goal() -> None:
    assert goal_of([plan("a", FAST, 5)]) == FAST


def test_the_weight_of_a_model_is_shared_among_its_objectives() -> None:
    goal = goal_of([plan("a", FAST, 2), plan("b", BUSY, 4)])
    assert goal.objectives == (Objective("a.p99_ms", 2), Objective("b.rate", 3), Objective("memory_mb", 1))
    assert goal.limits == (Limit.parse("a.p99_ms<=20"), Limit.parse("memory_mb<=500"))


def test_a_heavier_model_decides() -> None:
    """One setting doubles the rate of one model, another that of the other."""
    for weights, better in (((3.0, 1.0), "first"), ((1.0, 3.0), "second")):
        goal = goal_of([plan(name, Goal(), weight) for name, weight in zip("ab", weights, strict=True)])
        ranks = {
            "first": goal.rank({"a.rate": 200, "b.rate": 100}),
            "second": goal.rank({"a.rate": 100, "b.rate": 200}),
        }
        assert max(ranks, key=ranks.__getitem__) == better


def test_alternatives_of_several_models_are_combined() -> None:
    either = Goal(alternatives=((Limit.parse("p99_ms<=5"),), (Limit.parse("rate>=100"),)))
    goal = goal_of([plan("a", either), plan("b", either), plan("c", FAST)])
    assert len(goal.alternatives) == 4
    assert goal.alternatives[1] == (Limit.parse("a.p99_ms<=5"), Limit.parse("b.rate>=100"))
    assert goal.limits == (Limit.parse("c.p99_ms<=20"), Limit.parse("memory_mb<=500"))


def test_too_many_alternatives_are_refused() -> None:
    many = Goal(alternatives=tuple((Limit("p99_ms", bound, "at most"),) for bound in range(1, 101)))
    with pytest.raises(ConfigError, match="have 10,000 alternatives, the limit is 1,000"):
        goal_of([plan("a", many), plan("b", many)])


def test_the_search_is_a_function_whatever_was_imported() -> None:
    """This file imports the module that it stands in."""
    import alipes.tune

    assert callable(alipes.tune.run)

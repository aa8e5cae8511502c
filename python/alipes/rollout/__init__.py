"""Rollouts of versions: the share of a new version grows while its outcomes are good, and falls to nothing if not."""

from __future__ import annotations

from alipes.rollout.drive import Look, RolloutEnd
from alipes.rollout.journal import Journal
from alipes.rollout.outcomes import Outcomes, TimeCounts
from alipes.rollout.plan import RolloutPlan
from alipes.rollout.verdict import Finding, Judgement, Tolerance, Verdict, judge
from alipes.rollout.versions import run_rollout

__all__ = [
    "Finding",
    "Journal",
    "Judgement",
    "Look",
    "Outcomes",
    "RolloutEnd",
    "RolloutPlan",
    "TimeCounts",
    "Tolerance",
    "Verdict",
    "judge",
    "run_rollout",
]

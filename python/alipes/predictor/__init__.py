"""Handles to predictors: models behind a function, at another server or at the same, called with tensors.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.predictor.budget import RetryBudget
    from alipes.predictor.predictor import Predictor

__all__ = ["Predictor", "RetryBudget"]

_HOMES = {
    "Predictor": "alipes.predictor.predictor",
    "RetryBudget": "alipes.predictor.budget",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

"""Explainers: models that say which parts of an input a prediction rests on, made from a predictor or a function.

SHAP explains rows of numbers and texts, captum pictures. Both come with `pip install 'alipes[explain]'`. Names are
imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.explainers.explanation import Explanation
    from alipes.explainers.limits import Limits
    from alipes.explainers.picture import PictureExplainer
    from alipes.explainers.tabular import TabularExplainer
    from alipes.explainers.text import TextExplainer

__all__ = ["Explanation", "Limits", "PictureExplainer", "TabularExplainer", "TextExplainer"]

_HOMES = {
    "Explanation": "alipes.explainers.explanation",
    "Limits": "alipes.explainers.limits",
    "PictureExplainer": "alipes.explainers.picture",
    "TabularExplainer": "alipes.explainers.tabular",
    "TextExplainer": "alipes.explainers.text",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

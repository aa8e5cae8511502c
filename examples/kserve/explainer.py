"""The explainer: which words of a review its class rests on. It asks the transformer, as KServe has it."""

from __future__ import annotations

import alipes
from alipes.explainers import Limits, TextExplainer

reviews = alipes.Predictor("reviews", timeout_s=20.0)
explained = TextExplainer(reviews, target=1, limits=Limits(seconds=20.0, passes=5), seed=7).model("reviews")

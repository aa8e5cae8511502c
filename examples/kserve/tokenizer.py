"""The transformer: texts become tokens, the predictor's probabilities become words.

KServe starts it with `--model_name reviews --predictor_host HOST`; `run.py` does the same.
"""

from __future__ import annotations

from typing import Annotated

import alipes
import numpy as np
from reviews import tokens

bert = alipes.Predictor("bert", timeout_s=5.0)


@alipes.model(name="reviews", max_batch_size=64)
def classify(text: list[str]) -> Annotated[np.ndarray, np.float32, (None, 2)]:
    """Says how likely each text is a bad and a good review; the texts of several requests are one call."""
    probabilities: np.ndarray = bert.infer({"ids": tokens(text)})["probabilities"]
    return probabilities

"""The same transformer for the rows of several requests at once."""

from typing import Annotated

import alipes
import numpy as np

predictor = alipes.Predictor("double")
Rows = Annotated[np.ndarray, np.float64, (None, 4)]


@alipes.model(max_batch_size=64)
def shift(x: Rows) -> Rows:
    found: np.ndarray = predictor.infer({"x": x + 1})["output_0"]
    return found

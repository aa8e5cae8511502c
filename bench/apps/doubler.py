"""A predictor behind a transformer: doubles rows."""

from typing import Annotated

import alipes
import numpy as np

Rows = Annotated[np.ndarray, np.float64, (None, 4)]


@alipes.model(max_batch_size=64)
def double(x: Rows) -> Rows:
    return x * 2

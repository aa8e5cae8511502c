"""A transformer: adds one to rows, and asks the predictor that `--predictor_host` names; one request at a time."""

import alipes
import numpy as np

predictor = alipes.Predictor("double")


@alipes.model(concurrency=64)
async def shift(instances: list[list[float]]) -> dict[str, list[list[float]]]:
    rows = await predictor.infer_async({"x": np.array(instances) + 1})
    return {"predictions": rows["output_0"].tolist()}

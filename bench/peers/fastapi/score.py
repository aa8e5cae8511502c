import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)


class Score(BaseModel):
    x: list[float]


@app.post("/score")
async def score(request: Score) -> list[float]:
    return np.tanh(np.asarray(request.x, np.float32) @ weights).tolist()

import bentoml
import numpy as np


@bentoml.service(logging={"access": {"enabled": False}})
class Score:
    def __init__(self) -> None:
        self.weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=1000)
    def score(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x.astype(np.float32) @ self.weights)

import numpy as np
from mosec import Runtime, Server, Worker

weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)


class Score(Worker):
    def forward(self, data: list[dict]) -> list[list[float]]:
        rows = np.array([request["x"] for request in data], np.float32)
        return np.tanh(rows @ weights).tolist()


if __name__ == "__main__":
    server = Server()
    server.register_runtime({"/score": [Runtime(Score, num=1, max_batch_size=64, max_wait_time=1)]})
    server.run()
